"""A WordPiece tokenizer trained on captions, as JSON that ``tokenizers`` reads."""

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_wordpiece(captions: Iterable[str], vocab_size: int, min_count: int = 2) -> Tokenizer:
    """BERT's own recipe: lower case, accents stripped, every Chinese character a word of its own.

    Args:
        vocab_size: most entries of the vocabulary, the five special ones included; ``[PAD]`` is 0.
        min_count: how often a pair must be seen to be joined.
    """
    captions = list(captions)
    learner = _tokenizer(WordPiece(unk_token=UNKNOWN))
    # The trainer numbers letters inside words in an order that changes from run to run, and breaks ties by number:
    # named beforehand, they have fixed numbers.
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_count,
        limit_alphabet=vocab_size,
        special_tokens=[*SPECIAL, *_inner_letters(learner, captions)],
        show_progress=False,
    )
    learner.train_from_iterator(captions, trainer)
    tokenizer = _tokenizer(WordPiece(learner.get_vocab(), unk_token=UNKNOWN))
    tokenizer.add_special_tokens(list(SPECIAL))
    special = [(name, tokenizer.token_to_id(name)) for name in (CLS, SEP)]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{CLS} $A {SEP}", pair=f"{CLS} $A {SEP} $B:1 {SEP}:1", special_tokens=special
    )
    return tokenizer


def _tokenizer(model: WordPiece) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _inner_letters(tokenizer: Tokenizer, captions: Iterable[str]) -> list[str]:
    """``##x`` for every letter x that stands inside a word, sorted."""
    letters: set[str] = set()
    for caption in captions:
        normalised = tokenizer.normalizer.normalize_str(caption)
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalised):
            letters.update(word[1:])
    return [f"##{letter}" for letter in sorted(letters)]
