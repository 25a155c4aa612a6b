import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands.stores import write_noise_store, write_store
from tests.data_sets import rewrite
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import read_manifest
from vitcapr.store import check, reader
from vitcapr.store.layout import ArrayLayout, chunk_path, decode_ids, encode_ids
from vitcapr.store.reader import FeatureArray, open_features


def write_array(folder: Path, values: np.ndarray, chunk: int) -> FeatureArray:
    for start in range(0, len(values), chunk):
        block = np.zeros((chunk, *values.shape[1:]), values.dtype)
        block[: len(values[start : start + chunk])] = values[start : start + chunk]
        path = chunk_path(folder, start // chunk, values.ndim)
        path.parent.mkdir(parents=True)
        path.write_bytes(block.tobytes())
    return FeatureArray(folder, ArrayLayout.for_rows("image", values.shape, chunk, values.dtype.name))


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((23, 3, 2)).astype(np.float16)


@pytest.fixture(scope="module")
def array(values: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> FeatureArray:
    return write_array(tmp_path_factory.mktemp("array"), values, 5)


@given(rows=st.lists(st.integers(0, 22), max_size=60))
def test_gather_is_numpy_indexing(array: FeatureArray, values: np.ndarray, rows: list[int]) -> None:
    index = np.array(rows, dtype=np.int64)
    np.testing.assert_array_equal(array.gather(index), values[index])
    np.testing.assert_array_equal(array.gather(index.astype(np.uint64)), values[index])


KEYS = st.one_of(
    st.integers(-23, 22),
    st.slices(23),
    st.lists(st.integers(-23, 22), min_size=1, max_size=9),
    st.tuples(st.slices(23), st.integers(0, 2)),
    st.tuples(st.integers(-23, 22), st.slices(3), st.just(1)),
    st.tuples(st.just(...), st.integers(0, 1)),
    st.just(...),
)


@settings(max_examples=200)
@given(key=KEYS)
def test_brackets_are_numpy_brackets(array: FeatureArray, values: np.ndarray, key: Any) -> None:
    np.testing.assert_array_equal(array[key], values[key])


def test_masks_and_whole_arrays(array: FeatureArray, values: np.ndarray) -> None:
    mask = values[:, 0, 0] > 0
    np.testing.assert_array_equal(array[mask], values[mask])
    np.testing.assert_array_equal(np.asarray(array), values)
    assert (len(array), array.ndim, array.nbytes) == (23, 3, values.nbytes)
    assert sum(1 for _ in array[::7]) == 4


@pytest.mark.parametrize("rows", [[-1], [23], [0.5], [[1]]])
def test_rows_that_are_not_rows_are_refused(array: FeatureArray, rows: list[Any]) -> None:
    with pytest.raises(IndexError):
        array.gather(np.array(rows))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are counted by /proc")
def test_a_mapped_chunk_keeps_no_file_open(tmp_path: Path, values: np.ndarray) -> None:
    """COCO has thousands of chunks, and a process may usually open 1,024 files."""
    array = write_array(tmp_path, values, 1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    np.testing.assert_array_equal(array[:], values)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_short_chunk_is_one_line(tmp_path: Path, values: np.ndarray) -> None:
    array = write_array(tmp_path, values, 5)
    path = array.chunk_path(1)
    path.write_bytes(path.read_bytes()[:-30])
    np.testing.assert_array_equal(array.gather(np.array([4])), values[[4]])
    with pytest.raises(UserError, match="cut short"):
        array.gather(np.array([5]))


@pytest.mark.parametrize("files", [1, 128])
def test_many_threads_read_the_same_rows(
    tmp_path: Path, values: np.ndarray, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a chunk has to be let go before another is mapped."""
    monkeypatch.setattr(reader, "_MOST_MAPS", files)
    array = write_array(tmp_path, values, 5)

    def right(seed: int) -> bool:
        draws = np.random.default_rng(seed).integers(0, 23, (50, 7))
        return all(np.array_equal(array.gather(rows), values[rows]) for rows in draws)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(4)))
    kept = array.gather(np.array([4]))
    array.close()
    np.testing.assert_array_equal(kept, values[[4]])


@settings(max_examples=25)
@given(ids=st.lists(st.text("a0 /#\n\x7fäß漢\u200b🙂", min_size=1), min_size=1))
def test_ids_survive(ids: list[str]) -> None:
    assert decode_ids(encode_ids([ids, ids[:1]])) == [*ids, ids[0]]


def test_programs_that_know_nothing_of_us_read_the_store(experiment: Any) -> None:
    store = experiment.run()
    patches, cls = np.asarray(store["patches"]), store["cls"][:]
    group = zarr.open_group(store.path, mode="r")
    assert set(group.array_keys()) == {"patches", "cls", "image_id"}
    assert group.attrs["backbone"] == "noise-vit"
    np.testing.assert_array_equal(group["patches"][:], patches)
    assert bytes(group["image_id"][3]).rstrip(b"\0").decode() == store.image_ids[3]
    lazy = dask.array.from_zarr(str(store.path), component="cls")
    np.testing.assert_array_equal(lazy.compute(), cls)
    opened = tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store.path / "patches")}}, open=True, read=True
    ).result()
    np.testing.assert_array_equal(opened.read().result(), patches)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    return write_noise_store(tmp_path / "results")


def test_a_store_can_move_with_its_results(sealed: Path, tmp_path: Path) -> None:
    assert str(tmp_path) not in sealed.read_text()
    expected = open_features(sealed)["cls"][:]
    (tmp_path / "results").rename(tmp_path / "elsewhere")
    np.testing.assert_array_equal(open_features(tmp_path / "elsewhere/sealed")["cls"][:], expected)


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("cls/c/2/0", lambda content: content[:-1], "chunk 2 of 'cls' has 63 bytes instead of 64"),
        ("patches/c/1/0/0", lambda content: content[:-1] + bytes([content[-1] ^ 1]), "chunk 1 of 'patches' is damaged"),
        ("image_id/c/0/0", lambda content: b"z" + content[1:], "chunk 0 of 'image_id' is damaged"),
        ("cls/zarr.json", lambda _: b"{}", "the manifest is not that of the store: 'cls' differ"),
    ],
)
def test_damage_of_a_small_store_is_found_when_it_is_opened(
    sealed: Path, file: str, damage: Callable[[bytes], bytes], message: str
) -> None:
    group = open_features(sealed).path
    (group / file).write_bytes(damage((group / file).read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        open_features(sealed)
    assert "snakemake --forcerun extract --until seal" in str(caught.value)
    assert str(group) in str(caught.value)


def test_of_a_large_store_a_few_chunks_are_read(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return sha256_file(path)

    monkeypatch.setattr("vitcapr.files.sha256_file", counted)
    monkeypatch.setattr(check, "MOST_BYTES", 1)
    drawn = set()
    for _ in range(60):
        read.clear()
        open_features(sealed)
        assert len(read) == 2  # the table of ids and one chunk
        drawn.update(read)
    assert len(drawn) > 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda seal: seal["arrays"]["cls"].update(checksums=[]), "0 checksums for 11 rows"),
        (lambda seal: seal["arrays"]["cls"].update(dtype="uint8"), "that of the store: 'cls'"),
        (
            lambda seal: seal["arrays"]["patches"].update(shape=[11, 4, 4]),
            "that of the store: 'patches'",
        ),
        (lambda seal: seal.update(grid=[1, 4]), "its attributes"),
        (lambda seal: seal["attributes"].update(grid=[1, 4]), "its attributes"),
        (lambda seal: seal.update(fingerprint="0" * 64), "its attributes"),
    ],
)
def test_a_seal_that_is_not_that_of_the_store_is_refused(sealed: Path, change: Any, message: str) -> None:
    content = json.loads(sealed.read_text())
    change(content)
    sealed.write_text(json.dumps(content))
    with pytest.raises(UserError, match=message) as caught:
        open_features(sealed)
    assert str(sealed) in str(caught.value)
    assert caught.value.remedy


def test_other_images_with_the_same_ids_are_other_rows(experiment: Any, tmp_path: Path) -> None:
    store, data = experiment.run(), read_manifest(experiment.manifest)
    store.check_rows("image_id", data)
    changed = data.images.assign(sha256=["0" * 64, *data.images["sha256"][1:]])
    with pytest.raises(UserError, match="features are of other images with the ids of the data set noise"):
        store.check_rows("image_id", read_manifest(rewrite(data, tmp_path / "other", images=changed)))


def test_what_is_not_a_sealed_manifest_is_one_line(experiment: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        open_features(tmp_path / "absent.json")
    with pytest.raises(UserError, match="not a sealed feature manifest"):
        open_features(experiment.manifest)


@pytest.mark.parametrize("kind", ["features", "text_features", "pixels"])
def test_a_store_is_used_by_the_experiment_that_seals_it(tmp_path: Path, kind: str) -> None:
    sealed = write_store(
        tmp_path, {"cls": np.zeros((3, 2), np.float32)}, list("abc"), sealed=f"a/{kind}/b/manifest.json"
    )
    assert check.unused_stores(tmp_path) == []
    sealed.unlink()
    assert check.unused_stores(tmp_path) == [tmp_path / "stores" / ("c" * 16)]
