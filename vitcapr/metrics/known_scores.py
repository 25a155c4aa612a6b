"""Every score that tables show, in the order of their columns."""

from vitcapr.metrics.columns import (
    CLAIMS,
    GROUNDING,
    IMAGE_TO_TEXT,
    LANGUAGE,
    REFERENCES,
    TEXT_TO_IMAGE,
    Group,
    ScoreColumn,
    count,
)


def _ranked(direction: str, group: Group) -> list[ScoreColumn]:
    recalls = [ScoreColumn(f"{direction}_recall_{depth}", f"{group.prefix}R@{depth}", group) for depth in (1, 5, 10)]
    return [
        *recalls,
        ScoreColumn(f"{direction}_median_rank", f"{group.prefix}median rank", group, scale=1),
        ScoreColumn(f"{direction}_map_r", f"{group.prefix}mAP@R", group),
    ]


_COLUMNS = (
    *(ScoreColumn(f"bleu_{order}", f"BLEU-{order}", REFERENCES) for order in (1, 2, 3, 4)),
    ScoreColumn("bleu_mean", "mean BLEU", None),
    ScoreColumn("meteor", "METEOR", REFERENCES),
    ScoreColumn("rouge_l", "ROUGE-L", REFERENCES),
    ScoreColumn("cider", "CIDEr", REFERENCES),
    ScoreColumn("spice", "SPICE", REFERENCES),
    ScoreColumn("length_mean", "words each", LANGUAGE, scale=1, places=2),
    ScoreColumn("distinct_2", "distinct pairs", LANGUAGE),
    count("vocabulary_used", "words used", LANGUAGE),
    ScoreColumn("novel_share", "unseen captions", LANGUAGE),
    ScoreColumn("dangling_share", "dangling endings", LANGUAGE),
    count("identical_captions", "shared captions", LANGUAGE),
    *_ranked("i2t", IMAGE_TO_TEXT),
    *_ranked("t2i", TEXT_TO_IMAGE),
    ScoreColumn("rsum", "rsum", TEXT_TO_IMAGE),
    ScoreColumn("grounding", "attention on object", GROUNDING),
    ScoreColumn("grounding_chance", "by chance", GROUNDING),
    ScoreColumn("pointing_game", "pointing game", GROUNDING),
    ScoreColumn("pointing_game_chance", "by chance", GROUNDING),
    ScoreColumn("object_hallucination", "objects made up", GROUNDING),
    ScoreColumn("facts_true", "true captions", CLAIMS),
    ScoreColumn("facts_told", "claim recall", CLAIMS),
    *(
        ScoreColumn(f"facts_{kind}", label, CLAIMS)
        for kind, label in (
            ("objects", "objects"), ("counts", "counts"), ("colors", "colours"), ("relations", "relations"),
        )
    ),
    *(
        ScoreColumn(name, label, None, scale=1, places=2)
        for name, label in (
            ("caption_entropy", "H(text)"),
            ("image_entropy", "H(image)"),
            ("caption_spectral_entropy", "spectral H(text)"),
            ("image_spectral_entropy", "spectral H(image)"),
            ("caption_match_information", "I(text; match)"),
            ("image_match_information", "I(image; match)"),
            ("shared_information", "I(text; image)"),
        )
    ),
    *(
        ScoreColumn(f"{asked}_to_{found}_recall_{depth}", f"{asked}→{found} R@{depth}", None)
        for asked, found in (("zh", "en"), ("en", "zh"))
        for depth in (1, 5, 10)
    ),
)  # fmt: skip

COLUMNS = {column.name: column for column in _COLUMNS}
"""By the score's name."""


def in_groups(*groups: Group) -> list[ScoreColumn]:
    return [column for column in COLUMNS.values() if column.group in groups]
