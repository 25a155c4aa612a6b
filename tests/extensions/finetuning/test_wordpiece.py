"""A WordPiece tokenizer trained on captions of two languages."""

from vitcapr.extensions.finetuning.wordpiece import PAD, SPECIAL, train_wordpiece

CAPTIONS = ["A dog runs on the grass .", "Two dogs are running .", "一只狗在草地上跑。", "两只狗在跑。"] * 3


def test_special_pieces_come_first_and_frame_a_caption() -> None:
    tokenizer = train_wordpiece(CAPTIONS, 200, 1)
    assert [tokenizer.token_to_id(piece) for piece in SPECIAL] == [0, 1, 2, 3, 4]
    assert tokenizer.token_to_id(PAD) == 0
    pieces = tokenizer.encode("A dog").tokens
    assert pieces[0] == "[CLS]"
    assert pieces[-1] == "[SEP]"


def test_every_chinese_character_is_a_word() -> None:
    tokenizer = train_wordpiece(CAPTIONS, 200, 1)
    assert tokenizer.encode("一只狗").tokens[1:-1] == ["一", "只", "狗"]
    assert tokenizer.encode("猫").tokens[1:-1] == ["[UNK]"]


def test_the_same_captions_give_the_same_tokenizer() -> None:
    assert train_wordpiece(CAPTIONS, 60, 1).to_str() == train_wordpiece(CAPTIONS, 60, 1).to_str()
    assert train_wordpiece(CAPTIONS, 60, 1).get_vocab_size() <= 60
