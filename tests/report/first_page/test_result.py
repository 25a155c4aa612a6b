import pandas as pd

from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import write_comparison
from vitcapr.metrics.base import ORACLE
from vitcapr.report.first_page.result import attention_picture, sentences


def score(model, decoding, metric, value, protocol="p", split="test"):
    names = ("model", "decoding", "metric", "value", "low", "high", "protocol", "split")
    return dict(zip(names, (model, decoding, metric, value, value - 0.01, value + 0.01, protocol, split), strict=True))


def test_the_result_in_sentences(tmp_path):
    summary = pd.DataFrame(
        [
            score("a", "greedy", "cider", 0.5),
            score("a", "beam", "cider", 0.7),
            score("a", "oracle", "cider", 0.9, ORACLE + "p"),
            score("a", "greedy", "cider", 2.0, split="validation"),
            score("r", "", "t2i_recall_1", 0.25),
        ]
    )
    metric = {"before": 0.5, "after": 0.52, "difference": 0.02, "low": 0.01, "high": 0.03, "p_value": 0.01}
    system = {"model": "a", "protocol": "p"}
    for name, verdict, protocol in (
        ("gain", "higher", "p"),
        ("none", "no difference shown", "p"),
        ("o", "higher", ORACLE),
    ):
        write_comparison(
            tmp_path / f"{name}.json",
            {
                "before": {**system, "decoding": "beam"},
                "after": {**system, "decoding": name, "protocol": protocol},
                "metrics": {"cider": {**metric, "verdict": verdict}},
            },
        )
    assert sentences(summary, "test", [tmp_path / f"{name}.json" for name in ("gain", "none", "o")]) == [
        "Best captions: a, beam with CIDEr 70.0 (69.0-71.0), the highest of 2 systems, the oracle left out.",
        "Best retrieval: r with T→I R@1 25.0 (24.0-26.0), the only system.",
        "Gain of a, gain over a, beam, on the same images: CIDEr +2.00 (+1.00 to +3.00).",
        "Gain of a, none over a, beam, on the same images: CIDEr +2.00 (+1.00 to +3.00): no difference shown.",
    ]
    assert sentences(summary[:0], "test", []) == []


def test_a_picture_with_attention(dataset, tmp_path):
    files = {"captions": {"m/beam": tmp_path / "captions.json"}, "attention": {"m/beam": tmp_path / "attention.npz"}}
    picture = attention_picture(read_manifest(dataset), "test", **files)
    assert picture.alt.startswith("Attention of m/beam at each word of the caption: word0")
    assert picture.content.startswith(b"\x89PNG")
    assert attention_picture(read_manifest(dataset), "test", {}, {}) is None
