"""All scores in tables, in the order of their columns."""

from vitcapr.metrics import retrieval
from vitcapr.metrics.columns import CLAIMS, GROUNDING, REFERENCES, ScoreColumn, ScoreGroup
from vitcapr.metrics.registry import caption_metrics

_COLUMNS = (
    *(column for metric in caption_metrics().values() for column in metric.columns),
    ScoreColumn("bleu_mean", "mean BLEU", None),
    ScoreColumn("clip_score", "CLIPScore", REFERENCES),
    ScoreColumn("ref_clip_score", "RefCLIPScore", REFERENCES),
    ScoreColumn("sentence_similarity", "sentence similarity", REFERENCES),
    ScoreColumn("bert_score_precision", "BERTScore P", None),
    ScoreColumn("bert_score_recall", "BERTScore R", None),
    ScoreColumn("bert_score_f1", "BERTScore F1", REFERENCES),
    *retrieval.COLUMNS,
    ScoreColumn("grounding", "attention on object", GROUNDING),
    ScoreColumn("grounding_chance", "by chance", GROUNDING),
    ScoreColumn("pointing_game", "pointing game", GROUNDING),
    ScoreColumn("pointing_game_chance", "by chance", GROUNDING),
    ScoreColumn("object_hallucination", "objects made up", GROUNDING),
    ScoreColumn("claims_true", "true captions", CLAIMS),
    ScoreColumn("claim_recall", "claim recall", CLAIMS),
    *(
        ScoreColumn(f"claims_{kind}", label, CLAIMS)
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


def in_groups(*groups: ScoreGroup) -> list[ScoreColumn]:
    return [column for column in COLUMNS.values() if column.group in groups]
