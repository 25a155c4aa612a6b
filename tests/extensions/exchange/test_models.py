"""A model that was published is the same elsewhere, and its folder holds no code and no name of a person."""

import json
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import fsspec
import pytest

import vitcapr
from vitcapr.api.model_files import ModelFiles
from vitcapr.api.published_model import INDEX, PAGE
from vitcapr.errors import UserError
from vitcapr.experiment.copies import read_copies
from vitcapr.extensions.exchange.commands.models import pull, push
from vitcapr.extensions.exchange.model_pushing import model_page, read_page
from vitcapr.files import sha256_bytes

CAPTIONER = "results/toy/captioners/patch_attention"
MEMORY = fsspec.filesystem("memory")


@pytest.fixture
def url() -> str:
    return f"memory://published-{uuid.uuid4().hex}"


def names(url: str) -> set[str]:
    root = url.removeprefix("memory:/")
    return {path.removeprefix(f"{root}/") for path in MEMORY.find(root)}


def test_a_captioner_writes_the_same_elsewhere(
    project: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, photograph = project / CAPTIONER, project / "photos" / "photo 03.png"
    push(folder, url)
    assert names(url) >= {INDEX, PAGE, "captioners/patch_attention/best.safetensors", "text/vocabulary.json"}
    assert all(name.endswith((".json", ".safetensors", ".md")) for name in names(url))
    (copy,) = read_copies(folder)  # This experiment has no run records.
    assert (copy.file, copy.place) == ("card.json", url)
    assert copy.digest == sha256_bytes(MEMORY.cat(f"{url.removeprefix('memory:/')}/{INDEX}"))
    page = MEMORY.cat(f"{url.removeprefix('memory:/')}/{PAGE}").decode()
    assert page.startswith("---\nlibrary_name: vitcapr\npipeline_tag: image-to-text\n")
    assert "| data set | toy: images 6 train, 3 validation, 3 test |" in page
    assert "noise-vit" in page
    published = vitcapr.load_captioner(url).caption(photograph)[0]
    here = vitcapr.load_captioner(folder).caption(photograph)[0]
    assert (published.caption, published.log_prob) == (here.caption, here.log_prob)


def test_a_retriever_embeds_the_same_elsewhere(project: Path, url: str, tmp_path: Path) -> None:
    push(project / "results/toy/retrievers/words", url)
    pull(url, tmp_path / "copy")
    there = json.loads((tmp_path / "copy" / "data" / "manifest.json").read_text())
    assert there["image_root"] == "."
    for folder in (tmp_path / "copy", tmp_path / "copy" / "retrievers" / "words"):
        assert read_page(folder) == (tmp_path / "copy" / PAGE).read_text()


def test_the_page_of_a_model_on_imported_features(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {"backbone": "theirs", "revision": None, "weights_sha256": None}
    monkeypatch.setattr("vitcapr.extensions.exchange.model_pushing.read_sealed", lambda _: {"attributes": attributes})
    assert "not known" in model_page(ModelFiles.open(project / CAPTIONER))


CARD = "captioners/a/card.json"
WEIGHTS = "captioners/a/best.safetensors"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"../escape.json": 1}, "files.../escape.json"),
        ({"text/../../x.json": 1}, "files.text/../../x.json"),
        ({"code/model.py": 1}, "it lists code/model.py"),
        ({CARD: 1}, f"it lists no {WEIGHTS}"),
        ({CARD: 1, WEIGHTS: 1, "text/a": 1, "text/a/b": 1}, "it lists text/a as a file and as a folder"),
        ({CARD: 1, WEIGHTS: 10**18}, "bytes, more than 17179869184"),
    ],
)
def test_an_index_that_leads_elsewhere_or_is_endless_is_refused(
    url: str, tmp_path: Path, sizes: dict[str, int], message: str
) -> None:
    files = {name: {"size": size, "sha256": sha256_bytes(b"x")} for name, size in sizes.items()}
    index = {"format": "vitcapr-published-model-1", "model": "captioners/a", "files": files}
    MEMORY.pipe_file(f"{url.removeprefix('memory:/')}/{INDEX}", json.dumps(index).encode())
    with pytest.raises(UserError, match=rf"not a published model.*{re.escape(message)}"):
        pull(url, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_changed_file_is_refused(project: Path, url: str, tmp_path: Path) -> None:
    push(project / CAPTIONER, url)
    MEMORY.pipe_file(f"{url.removeprefix('memory:/')}/text/vocabulary.json", b"{}")
    with pytest.raises(UserError, match=r"'text/vocabulary\.json' does not have its checksum"):
        pull(url, tmp_path / "copy")


def test_nothing_there_is_one_line(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"no such file \(.*; push the model"):
        vitcapr.load_captioner(url)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": {"scoring": "cosine"}}, "its architecture and its settings differ"),
        ({"architecture": {"hidden_dim": 10**9}}, "its architecture and its settings differ"),
        ({"settings": {"captioner": {"scoring": "cosine"}}}, "scoring"),
        ({"settings": {"captioner": {"extra": 1}}}, "extra"),
        ({"settings": {"finetuned": {}, "captioner": ...}}, "this is no captioner"),
        ({"inputs": {"features": "../x"}}, "inputs.features"),
        ({"inputs": ...}, "inputs: Field required"),
        ({"backbone": "../../.."}, "backbone"),
        ({"best_epoch": "one"}, "best_epoch"),
        ({"code": {"a": 1}}, "code"),
        ({"more": 1}, "more"),
        ({"settings": {"captioner": {"architecture": "gru"}}}, "no captioner is called 'gru'"),
    ],
)
def test_the_card_of_a_published_model_is_not_believed(
    project: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    shutil.copytree(project / "results/toy", tmp_path / "toy")
    path = tmp_path / "toy/captioners/patch_attention/card.json"
    path.write_text(json.dumps(changed(json.loads(path.read_text()), change)))
    with pytest.raises(UserError, match=re.escape(message)):
        vitcapr.load_captioner(path.parent).caption(project / "photos/photo 03.png")


def changed(card: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The card with other values; ``...`` removes one."""
    card = dict(card)
    for key, value in change.items():
        if value is ...:
            del card[key]
        else:
            card[key] = changed(card[key], value) if isinstance(card.get(key), dict) else value
    return card


def test_a_model_of_the_other_kind_is_one_line(project: Path) -> None:
    with pytest.raises(UserError, match=r"this is no captioner .*; it is a retriever"):
        vitcapr.load_captioner(project / "results/toy/retrievers/words")
