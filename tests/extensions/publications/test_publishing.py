"""What is published, what stops it, and the tables of papers."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.extensions.publications import forgery
from tests.extensions.publications.conftest import ROOT, quiet
from vitcapr.commands import table
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_config
from vitcapr.extensions.publications.paper_table import check_table
from vitcapr.extensions.publications.publishing import Plan, check_terms, publish
from vitcapr.extensions.publications.verification import verify
from vitcapr.formats.containers import read_parquet


def test_rows_and_captions_of_other_splits_stay_at_home(publication: Path) -> None:
    captions = read_parquet(publication / "experiment/data/captions.parquet").to_pandas()
    scored = captions["split"] == "test"
    assert (captions["text"] != "")[scored].all()
    assert (captions["text"] == "")[~scored].all()
    assert np.load(publication / "experiment/features/vit/rows/patches.npy").shape == (12, 4, 12)
    names = [path.relative_to(publication).as_posix() for path in publication.rglob("*") if path.is_file()]
    assert not [name for name in names if "pictures" in name or name.endswith((".png", "tokens.npz", ".html.png"))]


def test_records_name_no_user_and_no_host(publication: Path) -> None:
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in publication.glob("experiment/runs/**/*.json")]
    assert {(run["made"]["user"], run["made"]["host"]) for run in runs} == {("", "")}


def test_the_crate_has_an_action_for_each_job(publication: Path) -> None:
    pytest.importorskip("rocrate")
    graph = json.loads((publication / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    actions = {one["name"]: one for one in graph if one["@type"] == "CreateAction"}
    assert {"data", "decode/a.beam.test", "train_captioner/a"} <= actions.keys()
    results = [one["@id"] for one in actions["decode/a.beam.test"]["result"]]
    assert results == ["experiment/captions/a/beam/test/captions.json"]


@pytest.mark.parametrize(
    ("without", "states", "again"),
    [
        (["features", "captions"], {("a", "trusted"), ("r", "scored")}, {"metrics", "summary.csv", "tables"}),
        (["references"], {("a", "trusted"), ("r", "trusted")}, {"captions", "summary.csv", "tables"}),
    ],
)
def test_a_zip_without_a_part_verifies_the_rest(
    study: Path, tmp_path: Path, monkeypatch: Any, without: list[str], states: set[Any], again: set[str]
) -> None:
    monkeypatch.chdir(study)
    config, target = read_config(Path("config.yaml")), tmp_path / "new/tiny.zip"
    publish(Plan(Path(ROOT), without), str(target), config, quiet(), tmp_path / "scratch")
    verified = verify(str(target), tmp_path / "root", quiet())
    main_scores = [number for number in verified.numbers() if number.row["metric"] in ("cider", "rsum")]
    assert {(number.row["model"], number.status) for number in main_scores} == states
    assert {place.partition("/")[0] for place in verified.again} == again
    assert verified.faults == []


def test_a_result_that_was_edited_is_not_published(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study / ROOT, tmp_path / ROOT)
    metrics = tmp_path / ROOT / "metrics/a/greedy/test/metrics.json"
    forgery.change_json(metrics, lambda content: content["metrics"]["cider"].update(value=5.0))
    with pytest.raises(UserError, match=r"not as score/a.greedy.test wrote it \(.*metrics.json"):
        Plan(tmp_path / ROOT)


def test_a_licence_that_is_not_open_names_the_key(study: Path, monkeypatch: Any) -> None:
    plan, config = Plan(study / ROOT), read_config(study / "config.yaml")
    terms = SimpleNamespace(licence="research only", model_dump=lambda: {"licence": "research only", "source": None})
    monkeypatch.setattr("vitcapr.extensions.publications.publishing.Terms.of", lambda _: terms)
    with pytest.raises(UserError, match=r"research only .*set publications.share_data: true .*--without references"):
        check_terms(plan, config)
    allowed: ExperimentConfig = config.model_copy(update={"publications": SimpleNamespace(share_data=True)})
    assert check_terms(plan, allowed)["data set scenes"]["licence"] == "research only"


def test_captions_of_another_processor_are_counted(publication: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Logits that differ in the third decimal, as another kind of arithmetic leaves them."""
    from vitcapr.models.architectures.patch_attention import PatchAttentionCaptioner

    step = PatchAttentionCaptioner.step

    def noisy(self: Any, *arguments: Any) -> Any:
        made = step(self, *arguments)
        places = (np.arange(made.logits.shape[-1]) * 7919) % 13
        return made._replace(logits=made.logits + made.logits.new_tensor((places - 6) * 0.0015))

    monkeypatch.setattr(PatchAttentionCaptioner, "step", noisy)
    verified = verify(str(publication), tmp_path, quiet())
    assert verified.faults == []
    assert any("captions changed" in line or "likelihoods differ" in line for line in verified.floating)
    assert {one.status for one in verified.numbers()} <= {"equal", "floating", "trusted"}


def test_captions_of_another_arithmetic_are_decoded_in_it(publication: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Here, ``auto`` is float32, whose logits differ so much that every caption is another."""
    from vitcapr.models.architectures.patch_attention import PatchAttentionCaptioner

    step = PatchAttentionCaptioner.step

    def other(self: Any, *arguments: Any) -> Any:
        made = step(self, *arguments)
        return made if torch.is_autocast_enabled("cpu") else made._replace(logits=-made.logits)

    monkeypatch.setattr(PatchAttentionCaptioner, "step", other)
    monkeypatch.setattr("vitcapr.encoders.devices.cpu_has_bfloat16", lambda: False)
    verified = verify(str(publication), tmp_path, quiet())
    assert verified.faults == []
    assert {number.status for number in verified.numbers()} == {"equal", "trusted"}


def test_a_table_of_a_paper_is_held_against_its_publication(
    study: Path, publication: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.main(study / ROOT / "summary.csv", latex=True)
    text = capsys.readouterr().out
    digest = next(line for line in text.splitlines() if "publication" in line).split()[-1]
    paper, said = tmp_path / "paper.tex", list[str]()
    paper.write_text(text, encoding="utf-8")
    assert list(check_table(paper, publication / "experiment", digest, said.append)) == []
    assert int(said[0].split()[1]) > 20
    number = next(cell for cell in text.split("&") if "8.3" in cell)
    paper.write_text(text.replace(number, number.replace("8.3", "88.3")), encoding="utf-8")
    faults = list(check_table(paper, publication / "experiment", digest, said.append))
    assert any("88.3" in fault and "the publication has 8.3" in fault for fault in faults)
