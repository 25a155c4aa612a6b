"""A model that was published is the same elsewhere, and its folder holds no code and no name of a person."""

import json
import uuid
from pathlib import Path

import fsspec
import pytest

import vitcapr
from vitcapr.api.published_model import INDEX, PAGE, cached_model
from vitcapr.commands.models import pull, push
from vitcapr.errors import UserError
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
    published = vitcapr.load_captioner(url).caption(photograph)[0]
    here = vitcapr.load_captioner(folder).caption(photograph)[0]
    assert (published.caption, published.log_prob) == (here.caption, here.log_prob)


def test_a_retriever_embeds_the_same_elsewhere(project: Path, url: str, tmp_path: Path) -> None:
    push(project / "results/toy/retrievers/words", url)
    pull(url, tmp_path / "copy")
    there = json.loads((tmp_path / "copy" / "data" / "manifest.json").read_text())
    assert there["image_root"] == "."
    assert (tmp_path / "copy" / "retrievers" / "words" / "card.json").is_file()


def test_the_page_has_data_set_backbone_and_use(project: Path, url: str) -> None:
    push(project / CAPTIONER, url)
    page = MEMORY.cat(f"{url.removeprefix('memory:/')}/{PAGE}").decode()
    assert page.startswith("---\nlibrary_name: vitcapr\npipeline_tag: image-to-text\n")
    assert "| data set | toy: images 6 train, 3 validation, 3 test |" in page
    assert "noise-vit" in page


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../escape.json", "files.../escape.json"),
        ("text/../../x.json", "files.text/../../x.json"),
        ("code/model.py", "files.code/model.py"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(url: str, tmp_path: Path, name: str, message: str) -> None:
    facts = {"size": 1, "sha256": sha256_bytes(b"x")}
    index = {"format": "vitcapr-published-model-1", "model": "captioners/a", "files": {name: facts}}
    MEMORY.pipe_file(f"{url.removeprefix('memory:/')}/{INDEX}", json.dumps(index).encode())
    with pytest.raises(UserError, match="is damaged") as caught:
        pull(url, tmp_path / "copy")
    assert message in str(caught.value)
    assert not (tmp_path / "copy").exists()


def test_a_changed_file_is_refused(project: Path, url: str, tmp_path: Path) -> None:
    push(project / CAPTIONER, url)
    MEMORY.pipe_file(f"{url.removeprefix('memory:/')}/text/vocabulary.json", b"{}")
    with pytest.raises(UserError, match=r"'text/vocabulary\.json' is not what"):
        pull(url, tmp_path / "copy")


def test_nothing_there_is_one_line(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="no published model there"):
        cached_model(url)
