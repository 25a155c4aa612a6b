"""An honest publication verifies, and planted faults are found and named."""

from pathlib import Path

from tests.extensions.publications.conftest import quiet
from vitcapr.extensions.publications.verification import verify


def test_an_honest_publication_verifies(publication: Path, tmp_path: Path) -> None:
    receipt = verify(str(publication), tmp_path, quiet())
    assert receipt.faults == []
    assert receipt.floating == []
    trusted = [number.row["metric"] for number in receipt.numbers if number.status != "equal"]
    assert trusted == ["novel_share", "novel_share"]
    assert {run.stage for run in receipt.trusted} == {"data_scenes", "vocabulary", "train_captioner", "train_retriever"}
