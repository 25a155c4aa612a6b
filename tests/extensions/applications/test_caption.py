"""Captions of single photographs: the same as the experiment's own, from files as they come."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.checkpoints import printed_by
from vitcapr.api.model_files import choose_decoding
from vitcapr.config.captioner import DecodingConfig
from vitcapr.data.digests import content_digest
from vitcapr.errors import UserError
from vitcapr.extensions.applications.commands import caption
from vitcapr.files import write_text
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.decode import decode
from vitcapr.stages.extract import extract

pytestmark = pytest.mark.usefixtures("project")
ATTENTION = "results/toy/captioners/patch_attention"


def run(*arguments: object, captioner: str = ATTENTION) -> str:
    return printed_by(caption.app, "--captioner", captioner, *arguments)


@pytest.fixture
def records(project: Path) -> Iterator[None]:
    """Run records of this test alone: the experiment serves all tests."""
    yield
    shutil.rmtree(project / "results/toy/runs")


def decoded(project: Path, captioner: str, decoding: str) -> list[dict[str, Any]]:
    """What the experiment's own stage writes for the test split, with its run record."""
    results, name = Path("results/toy"), Path(captioner).name
    output = results / f"captions/{name}/{decoding}/test/captions.json"
    run_stage(
        decode,
        results / f"logs/decode/{name}.{decoding}.test.log",
        features=results / "features/vit/manifest.json",
        manifest=results / "data/manifest.json",
        vocabulary=results / "text/vocabulary.json",
        captioner=Path(captioner),
        split="test",
        captions=output,
        settings={"decoding": {**DECODINGS, "drawn": DRAWN}[decoding]},
    )
    entries: list[dict[str, Any]] = json.loads((project / output).read_text())
    return entries


@pytest.mark.usefixtures("records")
def test_a_backbone_in_a_folder_anywhere_is_found_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store names a folder without its place; the run record of the extraction has it."""
    monkeypatch.delenv("VITCAPR_BACKBONES")
    with pytest.raises(UserError, match="not found locally or on the hub"):
        run("photos/photo 03.png")
    results = Path("results/toy")
    anywhere = shutil.copytree(project / "backbones" / "noise-vit", tmp_path / "noise-vit")
    backbone = {"source": str(anywhere), "dtype": "float32"}
    run_stage(
        extract,
        results / "logs/extract/vit.0.log",
        manifest=results / "data/manifest.json",
        stores="results/stores",
        part=results / "features/vit/parts/0.json",
        settings={"backbone": backbone, "features": {"chunk": 4, "batch": 4}},
    )
    assert len(json.loads(run("photos/photo 03.png", "--json"))) == 1


LONG = {"beam_size": 4, "n_best": 4, "max_length": 6, "length_penalty": 2.0, "block_ngram": 1, "precision": "float32"}
DECODINGS = {"greedy": {"beam_size": 1, "max_length": 6}, "long": LONG}
DRAWN = {"n_best": 3, "max_length": 6, "sampling": {"temperature": 0.9}}


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("captioner", [ATTENTION, "results/toy/captioners/baseline"])
@pytest.mark.parametrize("decoding", DECODINGS)
def test_the_very_captions_of_the_experiment(project: Path, captioner: str, decoding: str) -> None:
    """Word for word, with no value of the decoding given but its name."""
    expected = decoded(project, captioner, decoding)
    photographs = [f"photos/photo {number:02d}.png" for number in (3, 7, 11)]
    rows = json.loads(run(*photographs, "--json", "--decoding", decoding, captioner=captioner))
    assert [row["path"] for row in rows] == photographs
    for row, entry in zip(rows, expected, strict=True):
        assert row["caption"] == entry["caption"]
        assert [each["caption"] for each in row["candidates"]] == [each["caption"] for each in entry["candidates"]]
        assert row["log_prob"] == pytest.approx(entry["log_prob"], abs=1e-4)


def test_a_line_a_caption_aligned() -> None:
    lines = run("photos/photo 0*.png", "-n", 2).splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("photos/photo 00.png  ")
    assert lines[1].startswith(" " * len("photos/photo 00.png"))
    begins = {re.match(r"(photos/photo \d\d.png)? +-\d+\.\d\d  ", line).end() for line in lines}  # type: ignore[union-attr]
    assert len(begins) == 1
    assert not any(line.endswith(" ") for line in lines)


def test_bad_images_are_a_line_each_and_the_others_are_captioned(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("photos/photo 01.png", tmp_path / "good.png")
    (tmp_path / "cut\x1b.jpg").write_bytes(Path("photos/photo 02.png").read_bytes()[:60])
    options = {"captioner": project / ATTENTION, "as_json": True}
    with pytest.raises(UserError, match="2 of 3 have no caption"):
        caption.main(images=[str(tmp_path), "absent.png"], **options)  # type: ignore[arg-type]
    printed = capsys.readouterr()
    assert [row["path"] for row in json.loads(printed.out)] == [str(tmp_path / "good.png")]
    assert rf"bad: {tmp_path}/cut\x1b.jpg: damaged" in printed.err
    assert "bad: absent.png: no such file" in printed.err


def test_explained_in_a_folder_that_the_data_stage_leaves_out(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        shutil.copy("photos/photo 04.png", tmp_path / folder / "a.png")
    before = content_digest(tmp_path, tmp_path.with_name("cache"))
    rows = json.loads(run(tmp_path / "one", tmp_path / "two", "--explain", tmp_path / "drawn", "--json"))
    names = ["a.png.attention.png", "a.png-2.attention.png"]
    assert [row["attention"] for row in rows] == [str(tmp_path / "drawn" / name) for name in names]
    with Image.open(tmp_path / "drawn" / names[1]) as figure:
        assert figure.width > 1000
    assert content_digest(tmp_path, tmp_path.with_name("cache")) == before
    with pytest.raises(UserError, match="does not attend"):
        run(tmp_path / "one", "--explain", tmp_path, captioner="results/toy/captioners/baseline")


@pytest.mark.usefixtures("records")
def test_the_widest_decoding_of_the_experiment_unless_one_is_named() -> None:
    name = "results/toy/captioners/baseline"
    assert choose_decoding(Path(ATTENTION).with_name("views"), None) == ("", DecodingConfig())
    for decoding in DECODINGS:
        decoded(Path.cwd(), name, decoding)
    chosen = choose_decoding(Path(name), None)
    assert chosen == ("long", DecodingConfig(**LONG))
    assert choose_decoding(Path(name), "greedy", n_best=3)[1].beam_size == 3
    assert choose_decoding(Path(name), None, beam_size=2, length_penalty=0.5)[1] == DecodingConfig(
        **{**LONG, "beam_size": 2, "n_best": 2, "length_penalty": 0.5}
    )
    decoded(Path.cwd(), name, "drawn")
    assert choose_decoding(Path(name), None) == chosen
    assert choose_decoding(Path(name), "drawn") == ("drawn", DecodingConfig.model_validate(DRAWN))
    assert choose_decoding(Path(name), "drawn", beam_size=2)[1] == DecodingConfig(beam_size=2, n_best=2, max_length=6)
    with pytest.raises(UserError, match="n_best 7 is larger than beam_size 2"):
        run("photos/photo 00.png", "-n", 7, "--beam-size", 2)
    with pytest.raises(UserError, match=r"no decoding 'log' .*it has drawn, greedy, long"):
        run("photos", "--decoding", "log", captioner=name)


@pytest.mark.usefixtures("records")
def test_samples_of_a_photograph_do_not_depend_on_the_others() -> None:
    decoded(Path.cwd(), ATTENTION, "drawn")
    photographs = [f"photos/photo {number:02d}.png" for number in (3, 7)]
    together = json.loads(run(*photographs, "--json", "--decoding", "drawn", "-n", 9))
    alone = json.loads(run(photographs[1], "--json", "--decoding", "drawn", "-n", 9))
    captions = [[each["caption"] for each in row["candidates"]] for row in (*together, *alone)]
    assert len(captions[0]) > 3
    assert captions[0] != captions[1] == captions[2]


def test_which_captioner(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (None, Path("results/toy")):
        with pytest.raises(UserError, match=r"2 trained captioners .*; give one of results/toy/captioners/baseline, "):
            caption.main(images=["photos"], captioner=given)
    with pytest.raises(UserError, match=r"no trained captioner here .*give one of .*baseline, "):
        caption.main(images=["photos"], captioner=Path("results/toy/captioners/atention"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no trained captioner"):
        caption.main(images=[str(project / "photos")])


def test_what_it_was_not_trained_with(tmp_path: Path) -> None:
    alone = Path(shutil.copytree(ATTENTION, tmp_path / "captioners/mine"))
    with pytest.raises(UserError, match=r"vocabulary of the captioner not found .*in the folder of its experiment"):
        run("photos/photo 00.png", captioner=str(alone))
    words, features = tmp_path / "text/vocabulary.json", tmp_path / "features/vit/manifest.json"
    write_text(words, Path("results/toy/text/vocabulary.json").read_text() + " ")
    with pytest.raises(UserError, match="another vocabulary"):
        run("photos/photo 00.png", captioner=str(alone))
    shutil.copy("results/toy/text/vocabulary.json", words)
    write_text(features, Path("results/toy/features/mirrored/manifest.json").read_text())
    with pytest.raises(UserError, match="other features"):
        run("photos/photo 00.png", captioner=str(alone))
    other_vit = shutil.copytree("backbones/noise-vit", tmp_path / "vit")
    config = json.loads((other_vit / "config.json").read_text())
    (other_vit / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    with pytest.raises(UserError, match=r"its weights differ .*--backbone"):
        run("photos/photo 00.png", "--backbone", other_vit)
