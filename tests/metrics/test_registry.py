"""Every metric of captions is known to the configuration and the stage by its module alone."""

import pytest
from typer.testing import CliRunner

from vitcapr.commands import evaluate
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.errors import UserError
from vitcapr.metrics.base import TokenisedCaptions
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.scoring import caption_metrics


@pytest.mark.parametrize("name", ["bleu", "rouge_l", "cider", "diversity"])
def test_every_score_of_a_metric_has_a_label(name: str) -> None:
    metric = caption_metrics()[name]
    captions = TokenisedCaptions(["a dog", "a cat"], {"1": ["a dog"], "2": ["the cat"]}, ["A dog", "A cat"])
    assert metric.measure(captions).keys() <= COLUMNS.keys()


def test_the_configuration_knows_every_metric_and_no_other() -> None:
    for name in caption_metrics():
        assert parse_settings(ScoreSettings, f'{{"metrics": {{"caption": ["{name}"]}}}}').metrics.caption == [name]
    with pytest.raises(UserError, match=r"should be 'bleu', 'chair', 'cider', .*'spice' .*it was \"blue\""):
        parse_settings(ScoreSettings, '{"metrics": {"caption": ["blue"]}}')


def test_the_help_of_evaluate_names_every_metric() -> None:
    said = CliRunner().invoke(evaluate.app, ["--help"], env={"COLUMNS": "400", "TERM": "dumb"}).output
    assert all(name in said for name in caption_metrics())
