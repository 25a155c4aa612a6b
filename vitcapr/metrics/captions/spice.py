"""SPICE, which needs a download that is not part of the installation."""

import json
from collections.abc import Sequence

from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Measure, mean_measure
from vitcapr.metrics.caption_metric import Caption, CaptionMetric
from vitcapr.metrics.java import JARS, run_spice


def check_installed() -> None:
    """Check that the language models of SPICE are installed.

    Raises:
        UserError: the language models that SPICE parses with are not there; says how to get them.
    """
    library = JARS / "spice" / "lib"
    needed = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
    if missing := [name for name in needed if not (library / name).is_file()]:
        raise UserError(
            f"SPICE needs {' and '.join(missing)}, a download of 384 MB",
            where=library,
            remedy="leave spice out of metrics.caption, or run: python -c 'from pycocoevalcap.spice.get_stanford_models"
            " import get_stanford_models as get; get()'",
        )


def spice(candidates: Sequence[Caption], references: Sequence[Sequence[str]]) -> Measure:
    """Return the mean over images of SPICE's F-score (Anderson et al., 2016)."""
    request = [
        {"image_id": number, "test": candidate.text, "refs": list(others)}
        for number, (candidate, others) in enumerate(zip(candidates, references, strict=True))
    ]
    answers = json.loads(run_spice(json.dumps(request), candidates[0]))
    scores = {answer["image_id"]: float(answer["scores"]["All"]["f"]) for answer in answers}
    return mean_measure([scores[number] for number in range(len(candidates))])


METRIC = CaptionMetric(
    measure=lambda captions: {"spice": spice(captions.named, captions.tokenised_references)},
    protocol="spice:1.0",
    check=check_installed,
)
