"""Search by words and by image over the features of a small experiment, against embeddings computed by hand."""

import base64
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import vitcapr
from tests.checkpoints import printed_by
from tests.data_sets import rewrite
from vitcapr.errors import UserError
from vitcapr.extensions.applications.commands import search
from vitcapr.formats import embeddings
from vitcapr.formats.manifest import read_manifest
from vitcapr.retrieval.embedder import Retriever, open_retriever
from vitcapr.store.reader import FeatureStore, open_features

pytestmark = pytest.mark.usefixtures("project")
KINDS = ["words", "bert", "augmented_views"]
RESULTS = Path("results/toy")


def run(*arguments: object, kind: str = "words") -> list[list[str]]:
    """The cells of the printed lines."""
    folder = RESULTS / "retrievers" / kind
    lines = printed_by(search.app, "--retriever", folder, *arguments).splitlines()
    return [re.split(r"  +", line.strip()) for line in lines]


def stores(kind: str) -> list[FeatureStore]:
    return [open_features(RESULTS / "features" / name) for name in ["vit", *opened(kind).augmented_views]]


def opened(kind: str) -> Retriever:
    folder = RESULTS / "retrievers" / kind
    return open_retriever(folder, vocabulary=RESULTS / "text/vocabulary.json", device=torch.device("cpu"))


@pytest.mark.parametrize("kind", KINDS)
def test_words_find_the_images_with_the_largest_cosines(kind: str) -> None:
    retriever = opened(kind)
    images = retriever.image_embedder(*stores(kind)).embed(np.arange(12))
    cosines = (images @ retriever.text_embedder.embed(["a big bird"])[0]).tolist()
    lines = run("a", "big", "bird", "-k", 4, kind=kind)
    assert lines[0] == ["rank", "cosine", "image", "caption"]
    order = sorted(range(12), key=lambda row: -cosines[row])[:4]
    assert [line[2] for line in lines[1:]] == [f"photo {row:02d}.png" for row in order]
    assert [float(line[1]) for line in lines[1:]] == pytest.approx([cosines[row] for row in order], abs=6e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_photograph_of_the_collection_is_its_own_nearest(kind: str) -> None:
    lines = run("--image", "photos/photo 08.png", "--captions", "-k", 3, kind=kind)
    assert lines[1][:3] == ["1", "1.000", "photo 08.png"]
    assert lines[1][3] == "A boat."
    assert [line[0] for line in lines] == ["rank", "1", "2", "3"] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_captions(kind: str) -> None:
    retriever = opened(kind)
    texts = [
        f"{start} {thing}." for thing in ("man", "girl", "bird", "dog", "cat", "boat") for start in ("A", "The big")
    ]
    image = retriever.image_embedder(*stores(kind)).embed(np.array([3]))[0]
    cosines = dict(zip(texts, (retriever.text_embedder.embed(texts) @ image).tolist(), strict=True))
    lines = run("--image", "photos/photo 03.png", "--captions", "-k", 4, kind=kind)[6:]
    best = sorted(cosines.values(), reverse=True)[:2]
    # Every caption stands twice: images 0 and 6, 1 and 7, ... show the same thing.
    assert [float(line[1]) for line in lines] == pytest.approx([best[0]] * 2 + [best[1]] * 2, abs=2e-3)
    assert cosines[lines[0][3]] == pytest.approx(best[0], abs=2e-3)


def test_only_one_split() -> None:
    assert sorted(line[2] for line in run("dog", "--split", "test")[1:]) == [
        f"photo {row:02d}.png" for row in (3, 7, 11)
    ]
    with pytest.raises(UserError, match="no image is in the split 'tset'; the splits are test, train, validation"):
        run("dog", "--split", "tset")


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("--image", "photos/photo 08.png", "--captions", "-k", 3, "--html", page)
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', text)
    assert len(pictures) == 4
    assert all(base64.b64decode(picture)[:2] == b"\xff\xd8" for picture in pictures)
    assert not re.search(r'(src|href)="(?!data:)', text)
    run("--image", "photos/photo 08.png", "--captions", "-k", 3, "--html", tmp_path / "again.html")
    assert page.read_bytes() == (tmp_path / "again.html").read_bytes()


def test_the_second_search_embeds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("big cat", "--captions")
    for method in ("image_embedder", "caption_embedder"):
        monkeypatch.setattr(Retriever, method, None)
    assert run("big cat", "--captions") == first


def test_a_folder_that_cannot_be_written_is_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("big cat")
    shutil.rmtree(RESULTS / "retrievers/words/search", ignore_errors=True)

    def refused(*_: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(embeddings, "write_part", refused)
    retriever = vitcapr.load_retriever(RESULTS / "retrievers/words")
    assert retriever.search("big cat")["path"].tolist() == [line[2] for line in expected[1:]]


def test_a_retriever_searches_a_store_of_other_images_on_request(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No training: the features of the images come from the old store, or are computed."""
    data = read_manifest(RESULTS / "data/manifest.json")
    images, captions = (table[table["split"] == "test"] for table in (data.images, data.captions))
    captions = captions.assign(image_row=images.index.get_indexer(captions["image_row"]))
    manifest = rewrite(data, tmp_path / "data", images=images, captions=captions)
    monkeypatch.setenv("VITCAPR_STORES", str(project / "results/stores"))
    features = vitcapr.extract(manifest, "noise-vit", tmp_path / "features/vit", dtype="float32", chunk=4)
    found = run("dog", "--features", features, "--manifest", manifest)
    assert found == run("dog", "--split", "test")
    with pytest.raises(UserError, match="the retriever was trained on other features"):
        run("dog", "--features", RESULTS / "features/mirrored/manifest.json")


def test_mistakes_are_one_line() -> None:
    with pytest.raises(UserError, match="for words or for an image"):
        run()
    with pytest.raises(UserError, match="for words or for an image"):
        run("dog", "--image", "photos/photo 08.png")
    with pytest.raises(UserError, match="no such image"):
        run("--image", "absent.png")


def test_nothing_from_outside_steers_the_page_or_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = '<script>alert("x")</script>\x1b]0;title\x07\x9b31m'
    retriever = vitcapr.load_retriever(RESULTS / "retrievers/words")
    row = {"rank": 1, "cosine": 0.5, "path": nasty, "split": nasty}
    images, captions = pd.DataFrame([{**row, "caption": nasty}]), pd.DataFrame([{**row, "text": nasty}])
    page = search._page(nasty, None, retriever, images, captions)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 6
    assert "1. 0.500" in page
    assert "no picture" in page
    search._print(images, "caption")
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "\x1b" not in printed
    assert r"\x1b]0;title\x07\x9b31m" in printed


@pytest.mark.parametrize(("kind", "unknown"), [("words", "wyvern, qilin"), ("bert", None)])
def test_words_that_the_retriever_did_not_learn_are_named(
    kind: str, unknown: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    search.main(words=["A big wyvern, a", "Qilin!"], retriever=RESULTS / "retrievers" / kind)
    printed = capsys.readouterr().err
    assert (f"not in the vocabulary of the retriever: {unknown}\n" in printed) == (unknown is not None)
