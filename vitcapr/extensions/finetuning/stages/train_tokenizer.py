from vitcapr.config.base import StageSettings
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.config import TokenizerConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class TrainTokenizerSettings(StageSettings):
    tokenizer: TokenizerConfig = TokenizerConfig()


@stage()
def train_tokenizer(
    manifest: In[kinds.ManifestFile],
    settings: TrainTokenizerSettings,
    report: Reporter,
    tokenizer: Out[kinds.TokenizerFile],
) -> None:
    """Train a WordPiece tokenizer on the captions of the training split only."""
    from vitcapr.extensions.finetuning.text_files import write_tokenizer
    from vitcapr.extensions.finetuning.wordpiece import train_wordpiece
    from vitcapr.formats.manifest import read_manifest

    config = settings.tokenizer
    captions = read_manifest(manifest).captions_of("train")
    texts = captions["text"][captions["language"].isin(config.languages)].tolist()
    if not texts:
        raise UserError(
            f"the training split has no caption in {' or '.join(config.languages)}",
            where=manifest,
            remedy="list languages of the data set in tokenizers",
        )
    trained = train_wordpiece(texts, config.vocab_size)
    write_tokenizer(tokenizer, trained)
    lengths = [len(encoding.ids) for encoding in trained.encode_batch(texts)]
    report.line(
        f"{trained.get_vocab_size():,} tokens from {len(texts):,} captions in {', '.join(config.languages)}; "
        f"{sum(lengths) / len(lengths):.1f} tokens a caption, {max(lengths)} at most"
    )
