import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

import vitcapr
from tests.checkpoints import Experiment, extract_text, flip_bit, run_features, save_bert
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.experiment.paths import find_store
from vitcapr.extensions.exchange.commands import features
from vitcapr.extensions.exchange.foreign_files import open_foreign
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.adopt import adopt
from vitcapr.store.reader import open_features

IDS = ["b.jpg", "a.jpg", "c.jpg"]
GRIDS = np.arange(3 * 2 * 3 * 4, dtype=np.float32).reshape(3, 2, 3, 4) / 7
"""(image, row, column, channel), in the order of IDS."""
VECTORS = GRIDS[:, 0, 0]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of the same images in another order."""
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "stores"))
    return write_data_set(tmp_path / "data", dict.fromkeys(sorted(IDS), "train"), [(i, "en", "a") for i in sorted(IDS)])


def imported(*arguments: object) -> Path:
    output = run_features("import", *arguments)
    return Path(next(line for line in output.splitlines() if line.startswith("sealed: ")).removeprefix("sealed: "))


def write_h5(path: Path, arrays: dict[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


def write_h5_big(path: Path) -> None:
    write_h5(path, {"grid": GRIDS, "ids": IDS})


def write_folder(path: Path) -> None:
    path.mkdir()
    for name, grid in zip(IDS, GRIDS, strict=True):
        np.save(path / Path(name).stem, grid)


EACH = dict(zip(IDS, GRIDS, strict=True))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("each.h5", lambda path: write_h5(path, EACH)),
        ("big.h5", write_h5_big),
        ("each.npz", lambda path: np.savez(path, **EACH)),
        ("big.npz", lambda path: np.savez(path, image_id=np.array(IDS), grid=GRIDS)),
        ("folder", write_folder),
        # Ids by what they are: texts of any name, bytes, an axis of length one, bytes that somebody printed.
        ("names.h5", lambda path: write_h5(path, {"grid": GRIDS, "img_ids": np.array(IDS, "S").reshape(3, 1)})),
        ("texts.npz", lambda path: np.savez(path, grid=GRIDS, which=np.array([str(i.encode()) for i in IDS]))),
    ],
)
def test_grids_take_the_order_of_the_data_set(tmp_path: Path, data: Path, name: str, write: Any) -> None:
    write(tmp_path / name)
    sealed = imported(tmp_path / name, "--data", data)
    with open_features(sealed) as store:
        assert store.image_ids == ["a.jpg", "b.jpg", "c.jpg"]
        assert store.grid == (2, 3)
        array, expected = store["patches"], GRIDS.reshape(3, 6, 4)[[1, 0, 2]]
        np.testing.assert_array_equal(array[:], expected)
        for key in ([True, False, True], (1, [0, 2]), (slice(1, 3), [0, 2]), ([2, 0], 1), ([1, 2], ..., 0)):
            np.testing.assert_array_equal(array[key], expected[key])
        for key in (([1, 2], [0, 1]), True, ([1, 2], True)):
            with pytest.raises(IndexError):
                array[key]
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[1], expected[1])  # noqa: S301
        assert store.attributes["weights_sha256"] is None
        assert store.attributes["imported"]["kind"] in name or name in ("folder",)
    assert "imported.kind" in run_features("info", sealed)
    run_features("verify", sealed)
    before = sealed.read_bytes()
    assert imported(tmp_path / name, "--data", data).read_bytes() == before


def test_partitions_of_clip_retrieval(tmp_path: Path, data: Path) -> None:
    for part, rows in enumerate(([0, 1], [2])):
        for folder, array in (("img_emb", VECTORS), ("text_emb", 2 * VECTORS)):
            (tmp_path / "clip" / folder).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "clip" / folder / f"{folder}_{part}.npy", array[rows])
        names = [IDS[row] for row in rows]
        table = pd.DataFrame({"image_path": [f"/x/{name}" for name in names], "caption_id": [f"{n}#0" for n in names]})
        (tmp_path / "clip" / "metadata").mkdir(exist_ok=True)
        table.to_parquet(tmp_path / "clip" / "metadata" / f"metadata_{part}.parquet")
    with open_features(imported(tmp_path / "clip", "--data", data)) as store:
        np.testing.assert_array_equal(store["cls"][:], VECTORS[[1, 0, 2]])
    with open_features(imported(tmp_path / "clip", "--data", data, "--of", "captions")) as store:
        assert store.ids == ["a.jpg#0", "b.jpg#0", "c.jpg#0"]
        np.testing.assert_array_equal(store["text"][:], 2 * VECTORS[[1, 0, 2]])


@pytest.mark.usefixtures("data")
def test_partitions_come_back(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", image_id=np.array(IDS), cls=VECTORS)
    run_features("export", imported(tmp_path / "v.npz"), "--to", "clip-retrieval", "-o", tmp_path / "again")
    with open_features(imported(tmp_path / "again")) as store:
        np.testing.assert_array_equal(store["cls"][:], VECTORS)
        assert store.ids == IDS

    (tmp_path / "again/img_emb/img_emb_0.npy").rename(tmp_path / "again/img_emb/img_emb_1.npy")
    with pytest.raises(UserError, match="partition 0 has no img_emb"):
        imported(tmp_path / "again")


@pytest.mark.usefixtures("data")
def test_a_grid_comes_back(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", image_id=np.array(IDS), patches=GRIDS)
    run_features("export", imported(tmp_path / "g.npz"), "--to", "h5", "-o", tmp_path / "g.h5")
    with open_features(imported(tmp_path / "g.h5")) as store:
        assert store.grid == (2, 3)
    with pytest.raises(UserError, match="a grid of 2 x 3, not 3 x 2"):
        imported(tmp_path / "g.h5", "--grid", "3x2")


@pytest.mark.usefixtures("data")
def test_an_export_does_not_mix_with_another(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", image_id=np.array(IDS), cls=VECTORS)
    (tmp_path / "shared/text_emb").mkdir(parents=True)
    (tmp_path / "shared/text_emb/text_emb_0.npy").touch()
    with pytest.raises(UserError, match=r"text_emb_0.npy is of another store"):
        run_features("export", imported(tmp_path / "v.npz"), "--to", "clip-retrieval", "-o", tmp_path / "shared")


def test_what_does_not_fit_is_one_line(tmp_path: Path, data: Path) -> None:
    np.savez(tmp_path / "whole.npz", cls=VECTORS)
    with pytest.raises(UserError, match=r"'cls' does not say whose rows these are .*; give --ids"):
        imported(tmp_path / "whole.npz")
    np.savez(tmp_path / "few.npz", **{"a.jpg": VECTORS[0], "z.jpg": VECTORS[1]})
    with pytest.raises(UserError, match=r"2 of 3 ids of the data set have no features, 'b.jpg' first"):
        imported(tmp_path / "few.npz", "--data", data)
    np.savez(tmp_path / "odd.npz", **{"a.jpg": GRIDS[0], "b.jpg": GRIDS[1, :1], "c.jpg": GRIDS[2]})
    with pytest.raises(UserError, match=r"features of 'b.jpg' are of shape \(3, 4\)"):
        imported(tmp_path / "odd.npz", "--data", data)
    np.savez(tmp_path / "nan.npz", **{name: np.full(4, np.nan) for name in IDS})
    with pytest.raises(UserError, match=r"'cls': 3 of 3 rows are not finite, 'a.jpg' first"):
        imported(tmp_path / "nan.npz", "--data", data)
    for ids, words in ((np.ones((3, 2)), r"not float64 of shape \(3, 2\)"), ([0.5, 1, 2], "a text or a whole number")):
        np.savez(tmp_path / "ids.npz", image_id=ids, cls=VECTORS)
        with pytest.raises(UserError, match=words):
            imported(tmp_path / "ids.npz")
    np.savez(tmp_path / "two.npz", image_names=np.array(IDS), img_ids=np.array(IDS), cls=VECTORS)
    with pytest.raises(UserError, match="'image_names' or 'img_ids' may be the ids"):
        imported(tmp_path / "two.npz")
    np.savez(tmp_path / "texts.npz", caption_id=np.array(IDS), cls=VECTORS)
    with pytest.raises(UserError, match="give --of captions"):
        imported(tmp_path / "texts.npz")
    np.save(tmp_path / "bare.npy", VECTORS)
    with pytest.raises(UserError, match="give --ids"):
        imported(tmp_path / "bare.npy")
    (tmp_path / "ids.txt").write_text("\n".join(IDS), encoding="utf-8-sig")
    with open_features(imported(tmp_path / "bare.npy", "--ids", tmp_path / "ids.txt")) as store:
        assert store.ids == IDS


def test_an_experiment_adopts_a_store_of_its_images(tmp_path: Path, data: Path) -> None:
    write_h5_big(tmp_path / "big.h5")
    sealed = imported(tmp_path / "big.h5", "--data", data)
    output = tmp_path / "results" / "demo" / "features" / "vit" / "manifest.json"
    run_stage(adopt, store=sealed, manifest=data, sealed=output)
    with open_features(output) as adopted, open_features(sealed) as store:
        assert adopted.path == store.path
        assert adopted.fingerprint == store.fingerprint
    with pytest.raises(UserError, match=r"not those of the images of the data set .* --data"):
        run_stage(adopt, store=imported(tmp_path / "big.h5"), manifest=data, sealed=output)
    partial = {**json.loads(sealed.read_text()), "partial": True}
    sealed.write_text(json.dumps(partial))
    with pytest.raises(UserError, match="the store is incomplete"):
        run_stage(adopt, store=sealed, manifest=data, sealed=output)


def test_an_experiment_adopts_a_store_of_its_captions(tmp_path: Path, data: Path) -> None:
    ids = [f"{name}#0" for name in sorted(IDS)]
    output = tmp_path / "results/demo/text_features/bert/manifest.json"
    np.savez(tmp_path / "t.npz", ids=np.array(ids), text=VECTORS)
    run_stage(adopt, store=imported(tmp_path / "t.npz", "--of", "captions"), manifest=data, sealed=output)
    with open_features(output) as store:
        assert (store.identity, store.ids) == ("caption_id", ids)
    for names, words in (
        (["a.jpg#0", "b.jpg#1"], "2 of 3 have none, 'b.jpg#0' first"),
        ([*ids, "d.jpg#0"], "1 are of others"),
        (ids[::-1], "another order"),
    ):
        np.savez(tmp_path / "t.npz", ids=np.array(names), text=np.ones((len(names), 4), np.float32))
        with pytest.raises(UserError, match=words):
            run_stage(adopt, store=imported(tmp_path / "t.npz", "--of", "captions"), manifest=data, sealed=output)


def test_pulled_stores_are_adopted_by_digest_without_checkpoint_and_photographs(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path / "backbones"))
    save_bert(tmp_path / "backbones" / "bert", ["noise"])
    options: dict[str, Any] = {"dtype": "float32", "max_length": 8}
    texts = extract_text(experiment.manifest, "bert", tmp_path / "made" / "bert", **options)
    made = {"vit": experiment.run(), "bert": vitcapr.open_features(texts)}
    expected = {name: next(iter(store.values()))[:] for name, store in made.items()}
    for name, store in made.items():
        run_features("push", store.manifest_path, tmp_path / "group" / name)
        shutil.rmtree(store.path.parent)
    for gone in ("backbones", "noise-vit", "data/pictures"):
        shutil.rmtree(tmp_path / gone)
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "pulled"))
    for name, store in made.items():
        run_features("pull", tmp_path / "group" / name)
        source, sealed = find_store(store.fingerprint[:16]), tmp_path / "new" / name / "manifest.json"
        run_stage(adopt, store=source, manifest=experiment.manifest, sealed=sealed)
        np.testing.assert_array_equal(next(iter(open_features(sealed).values()))[:], expected[name])
        other = source.parent.rename(tmp_path / "pulled" / ("0" * 16)) / "manifest.json"
        with pytest.raises(UserError, match="the store is named 0000000000000000, and its fingerprint is"):
            run_stage(adopt, store=other, manifest=experiment.manifest, sealed=sealed)
        other.parent.rename(source.parent)


def outside_storage(file: h5py.File, secret: Path) -> None:
    file.create_dataset("a", (3, 4), "f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def outside_link(file: h5py.File, secret: Path) -> None:
    file["a"] = h5py.ExternalLink(str(secret), "/a")


def outside_virtual(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((3, 4), "f4")
    layout[:] = h5py.VirtualSource(str(secret), "a", shape=(3, 4))
    file.create_virtual_dataset("a", layout)


@pytest.mark.parametrize("write", [outside_storage, outside_link, outside_virtual])
@pytest.mark.parametrize("group", ["/", "deep/down"])
@pytest.mark.parametrize("ids", [None, IDS])
def test_an_h5_file_reaches_into_no_other_file(
    tmp_path: Path, write: Callable[[h5py.File, Path], None], group: str, ids: list[str] | None
) -> None:
    with h5py.File(tmp_path / "secret", "w") as secret:
        secret["a"] = np.ones((3, 4), "f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write(file.require_group(group), tmp_path / "secret")
    with pytest.raises(UserError, match="lies in another file"), open_foreign(tmp_path / "a.h5", ids):
        pass


@pytest.mark.parametrize(("ids", "words"), [(["a", "b"], "2 ids for 3 rows"), (["a", "b", "a"], "'a' is there twice")])
def test_each_row_has_one_id(tmp_path: Path, ids: list[str], words: str) -> None:
    np.save(tmp_path / "a.npy", VECTORS)
    with pytest.raises(UserError, match=words), open_foreign(tmp_path / "a.npy", ids):
        pass
    np.save(tmp_path / "empty.npy", VECTORS[:0])
    with pytest.raises(UserError, match="no features there"), open_foreign(tmp_path / "empty.npy", []):
        pass


@pytest.mark.parametrize("kind", ["f.h5", "f.npz", "f.npy"])
@pytest.mark.parametrize("with_data", [False, True])
def test_corrected_ids_are_another_store(tmp_path: Path, data: Path, kind: str, with_data: bool) -> None:
    if kind == "f.npy":
        np.save(tmp_path / kind, VECTORS)
    else:
        (write_h5 if kind == "f.h5" else lambda path, arrays: np.savez(path, **arrays))(tmp_path / kind, {"x": VECTORS})
    for order in (IDS[::-1], IDS):
        (tmp_path / "ids.json").write_text(json.dumps(order), encoding="utf-8-sig")
        options = ["--data", data] if with_data else []
        with open_features(imported(tmp_path / kind, "--ids", tmp_path / "ids.json", *options)) as store:
            assert store.ids == (sorted(IDS) if with_data else order)
            np.testing.assert_array_equal(store["cls"][:], VECTORS[[order.index(name) for name in store.ids]])


def test_an_import_is_repaired_by_the_same_import(tmp_path: Path, data: Path) -> None:
    np.savez(tmp_path / "f.npz", ids=IDS, x=VECTORS)
    manifest = imported(tmp_path / "f.npz", "--data", data)
    with open_features(manifest) as store:
        chunk = store["cls"].chunk_path(0)
    flip_bit(chunk)
    with pytest.raises(UserError, match="delete these files, then run the same features import again"):
        run_features("verify", manifest)
    chunk.unlink()
    imported(tmp_path / "f.npz", "--data", data)
    run_features("verify", manifest)


@pytest.mark.usefixtures("data")
def test_every_option_that_decides_the_store_is_in_its_fingerprint(tmp_path: Path) -> None:
    write_h5(tmp_path / "f.h5", {"grid": GRIDS.reshape(3, 6, 4), "more": VECTORS, "ids": IDS})
    options = [[], ["--grid", "2x3"], ["--grid", "3x2"], ["--name", "x"], ["--array", "grid"], ["--array", "more"]]
    options += [["--array", "more", "--of", "captions"]]
    stores = {imported(tmp_path / "f.h5", *each) for each in options}
    assert len(stores) == len(options)
    assert {imported(tmp_path / "f.h5", *each) for each in options} == stores
    with open_features(imported(tmp_path / "f.h5", "--grid", "3x2", "--array", "grid")) as store:
        assert store.grid == (3, 2)


@pytest.fixture
def cats_and_dogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "stores"))
    ids = [f"{kind}/{number:03}.jpg" for kind in ("cats", "dogs") for number in range(3)]
    captions = [(name, "en", "a") for name in ids]
    return write_data_set(tmp_path / "data", dict.fromkeys(ids, "train"), captions)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["000", "001", "002"], "'cats/000.jpg' and 'dogs/000.jpg' are both the image '000'"),
        (["cats/000.jpg", "cats/001.jpg", "cats/002.jpg"], "3 of 6 ids of the data set have no features, 'dogs/000"),
        (["/x/cats/000", "/x/cats/001", "/x/cats/002"], "3 of 6 ids of the data set have no features, 'dogs/000"),
        (["cats/000", "cats/001", "cats/002", "birds/003"], "3 of 6 ids of the data set have no features, 'dogs/000"),
        (
            [f"{kind}/{number:03}" for kind in ("cats", "bulldogs") for number in range(3)],
            "3 of 6 ids|may be the image",
        ),
    ],
)
def test_no_image_gets_the_features_of_another(
    tmp_path: Path, cats_and_dogs: Path, names: list[str], words: str
) -> None:
    np.savez(tmp_path / "f.npz", ids=np.array(names), cls=np.ones((len(names), 4), np.float32))
    with pytest.raises(UserError, match=words):
        imported(tmp_path / "f.npz", "--data", cats_and_dogs)


@pytest.mark.parametrize("kind", ["clip", "npy", "npz", "h5"])
def test_the_path_below_the_folder_is_the_id(tmp_path: Path, cats_and_dogs: Path, kind: str) -> None:
    names = [f"{kind}/{number:03}" for kind in ("dogs", "cats") for number in range(3)]
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    source = tmp_path / kind
    if kind == "clip":
        for folder in ("img_emb", "metadata"):
            (source / folder).mkdir(parents=True)
        np.save(source / "img_emb/img_emb_0.npy", values)
        table = pd.DataFrame({"image_path": [f"/home/me/{name}.jpg" for name in names]})
        table.to_parquet(source / "metadata/metadata_0.parquet")
    elif kind == "h5":
        source = tmp_path / "f.h5"
        write_h5(source, dict(zip(names, values, strict=True)))
    else:
        for name, row in zip(names, values, strict=True):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            np.save(source / name, row) if kind == "npy" else np.savez(source / name, feat=row)
    with open_features(imported(source, "--data", cats_and_dogs)) as store:
        np.testing.assert_array_equal(store["cls"][:], values[[3, 4, 5, 0, 1, 2]])


@pytest.mark.usefixtures("data")
def test_what_is_not_imported_is_named(tmp_path: Path, data: Path) -> None:
    more = np.concatenate([VECTORS, VECTORS[:1]])
    np.savez(tmp_path / "f.npz", ids=np.array([*IDS, "z.jpg"]), cls=more, boxes=np.zeros(7), names=np.array(IDS))
    done = CliRunner().invoke(features.app, ["import", str(tmp_path / "f.npz"), "--data", str(data)])
    assert "1 of 4 rows are not in the data set, 'z.jpg' first" in done.stderr
    assert "not imported, without a vector for each row: boxes, names" in done.stderr


def test_pickles_are_not_opened_and_the_line_says_what_to_do(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", **{name: np.array([{}], dtype=object) for name in IDS})
    with pytest.raises(UserError, match="allow_pickle=False"):
        imported(tmp_path / "p.npz")
    (tmp_path / "f.pt").write_bytes(b"x")
    with pytest.raises(UserError, match=r"torch.load\(FILE, weights_only=True\), write it with numpy.savez"):
        imported(tmp_path / "f.pt")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.pt").write_bytes(b"x")
    with pytest.raises(UserError, match=r"the folder has .pt files .* torch.load\(FILE, weights_only=True\)"):
        imported(tmp_path / "folder")


def test_rows_that_cannot_be_and_axes_of_length_one(tmp_path: Path, data: Path) -> None:
    values = np.stack([VECTORS[0], VECTORS[0], np.zeros(4, np.float32)])[:, None]  # As of model(picture[None]).
    np.savez(tmp_path / "v.npz", **dict(zip(IDS, values, strict=True)))
    printed = CliRunner().invoke(features.app, ["import", str(tmp_path / "v.npz"), "--data", str(data)]).stderr
    assert "'cls': 1 of 3 rows are zeros, 'c.jpg' first" in printed
    assert "'cls': 1 of 3 rows equal an earlier row, 'b.jpg' first" in printed
    tokens = np.random.default_rng(0).normal(size=(3, 1, 5, 4))  # CLS and 2 x 2, in a batch of one.
    tokens[1, 0, 4] = 0
    np.savez(tmp_path / "t.npz", **dict(zip(IDS, tokens, strict=True)))
    printed = CliRunner().invoke(features.app, ["import", str(tmp_path / "t.npz"), "--data", str(data)]).stderr
    assert "'patches': 5 tokens are 2 x 2 and one more, such as CLS" in printed
    assert "'patches': 1 of 3 rows have patches of zeros, 'a.jpg' first" in printed


def test_channels_first_are_asked_for(tmp_path: Path, data: Path) -> None:
    maps = np.random.default_rng(0).normal(size=(3, 6, 2, 2))
    np.savez(tmp_path / "m.npz", **dict(zip(IDS, maps, strict=True)))
    with pytest.raises(UserError, match="give --grid 2x2 for 6 channels, or --grid 6x2 for 2"):
        imported(tmp_path / "m.npz", "--data", data)
    with open_features(imported(tmp_path / "m.npz", "--data", data, "--grid", "2x2")) as store:
        expected = np.moveaxis(maps, 1, 3).reshape(3, 4, 6)[[1, 0, 2]].astype(np.float32)
        np.testing.assert_array_equal(store["patches"][:], expected)
        assert store.grid == (2, 2)
    cubes = np.random.default_rng(0).normal(size=(3, 4, 4, 4))
    np.savez(tmp_path / "c.npz", **dict(zip(IDS, cubes, strict=True)))
    with pytest.raises(UserError, match=r"4 x 4 x 4 has no more channels than columns .* or give --grid 4x4"):
        imported(tmp_path / "c.npz", "--data", data)
    flat = np.random.default_rng(0).normal(size=(3, 20, 9))
    np.savez(tmp_path / "f.npz", **dict(zip(IDS, flat, strict=True)))
    with pytest.raises(UserError, match=r"9 places of 20 channels, or the reverse .* give --grid 3x3 for 9 places"):
        imported(tmp_path / "f.npz", "--data", data)
    with open_features(imported(tmp_path / "f.npz", "--data", data, "--grid", "3x3")) as store:
        np.testing.assert_array_equal(store["patches"][:], flat.swapaxes(1, 2)[[1, 0, 2]].astype(np.float32))


def test_content_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "stores"))
    names = [f"{row:03d}.png" for row in range(60)]
    written = write_data_set(tmp_path / "data", dict.fromkeys(names, "train"), [(i, "en", "a") for i in names])
    data, drawn = vitcapr.read_manifest(written), np.random.default_rng(0)
    small = drawn.integers(0, 255, (60, 3)).astype(np.uint8)
    for path, colour in zip(data.images["path"], small, strict=True):
        Image.new("RGB", tuple(data.images.loc[0, ["width", "height"]]), tuple(colour.tolist())).save(
            data.image_root / path
        )
    vectors = small @ drawn.normal(size=(3, 8))
    np.savez(tmp_path / "right.npz", image_id=np.array(names), cls=vectors)
    np.savez(tmp_path / "wrong.npz", image_id=np.array(names), cls=np.roll(vectors, 1, axis=0))
    done = CliRunner().invoke(features.app, ["import", str(tmp_path / "right.npz"), "--data", str(written)])
    assert "'cls' and photographs belong together, by 60 rows" in done.stderr
    with pytest.raises(UserError, match="they fit shifted by one"):
        imported(tmp_path / "wrong.npz", "--data", written)
    sealed = imported(tmp_path / "wrong.npz", "--data", written, "--without-content-check")
    with open_features(sealed) as store:
        assert store.attributes["imported"]["content_check"] is False
    with pytest.raises(UserError, match="they fit shifted by one"):
        run_features("audit", sealed, "--data", written)
