import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import ViTModel
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from tests.checkpoints import make_dataset, snapshot
from tests.launches import no_waits
from vitcapr.errors import UserError
from vitcapr.store import fill, writer
from vitcapr.store.fill import cut_batches
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.layout import chunk_path, chunk_range
from vitcapr.store.reader import open_features


def stores(experiment: Any, name: str = "stores") -> Path:
    (folder,) = (experiment.root / "results" / name).iterdir()
    return Path(folder)


def test_features_are_those_of_transformers_alone(experiment: Any) -> None:
    """Processor and model as their authors wrote them, one picture at a time."""
    store = experiment.run(store_dtype="float32")
    processor = ViTImageProcessorPil.from_pretrained(experiment.backbone)
    model = ViTModel.from_pretrained(experiment.backbone, add_pooling_layer=False).eval()
    assert store.grid == (2, 2)
    assert store["patches"].shape == (11, 4, 8)
    for row, image_id in enumerate(store.image_ids):
        image = Image.open(experiment.root / "data" / "pictures" / f"bild_{image_id}.png")
        with torch.inference_mode():
            hidden = model(processor(image, return_tensors="pt")["pixel_values"]).last_hidden_state[0].numpy()
        np.testing.assert_allclose(store["cls"][row], hidden[0], atol=1e-5)
        np.testing.assert_allclose(store["patches"][row], hidden[1:], atol=1e-5)


@pytest.mark.parametrize("chunks", [0, 1, 2, 7, 10])
@pytest.mark.parametrize("tasks", [1, 2, 3, 8])
def test_tasks_share_all_chunks_in_order(chunks: int, tasks: int) -> None:
    shares = [list(chunk_range(chunks, task, tasks)) for task in range(tasks)]
    assert [index for share in shares for index in share] == list(range(chunks))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_forward_pass_never_crosses_chunks() -> None:
    batches = cut_batches([0, 2], KnownRows.none(rows=11, chunk=4, first=0), batch=3)
    assert [rows.tolist() for rows in batches] == [[0, 1, 2], [3], [8, 9, 10]]


def test_several_tasks_make_the_same_store_as_one(experiment: Any) -> None:
    one = experiment.seal([experiment.extract("one", stores="s1")], "one", stores="s1")
    parts = [experiment.extract("many", task, 3, stores="s2") for task in (2, 0, 1)]
    many = experiment.seal(parts, "many", stores="s2")
    assert snapshot(stores(experiment, "s1")) == snapshot(stores(experiment, "s2"))
    assert stores(experiment, "s1").name == stores(experiment, "s2").name
    assert one.read_text().replace("/s1/", "/s2/") == many.read_text()


@pytest.mark.parametrize("step", [1, 3, 5, 9])
def test_dying_at_any_write_continues_to_the_same_bytes(
    experiment: Any, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Three chunks of two arrays and a checksum each make nine writes; the process dies in each of them once."""
    experiment.seal([experiment.extract("whole", stores="s1")], "whole", stores="s1")
    calls = 0
    real_bytes, real_json = writer.write_bytes, writer.write_json

    def die_in(real: Callable[..., None]) -> Callable[..., None]:
        def write(path: Path, content: Any) -> None:
            nonlocal calls
            if "c" in path.parts or path.parent.name == "checksums":
                calls += "image_id" not in path.parts
                if calls == step:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.with_name(f".{path.name}.00000000.partial").write_bytes(b"half")
                    raise KeyboardInterrupt
            real(path, content)

        return write

    with monkeypatch.context() as patched:
        patched.setattr(writer, "write_bytes", die_in(real_bytes))
        patched.setattr(writer, "write_json", die_in(real_json))
        with pytest.raises(KeyboardInterrupt):
            experiment.extract("again", stores="s2")
    before = snapshot(stores(experiment, "s2"))
    assert sum(name.startswith("checksums/0") for name in before) == (step - 1) // 3
    experiment.seal([experiment.extract("again", stores="s2")], "again", stores="s2")
    assert snapshot(stores(experiment, "s1")) == snapshot(stores(experiment, "s2"))


def test_a_feature_that_is_not_finite_names_the_image(experiment: Any) -> None:
    weights = load_file(experiment.backbone / "model.safetensors")
    weights["layernorm.bias"][0] = float("nan")
    save_file(weights, experiment.backbone / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="features of image '0_ä' are not finite"):
        experiment.extract()
    weights["layernorm.bias"][0] = 1e5
    save_file(weights, experiment.backbone / "model.safetensors", metadata={"format": "pt"})
    for dtype in ("float16", "int8"):
        with pytest.raises(UserError, match=r"'0_ä' are too large for the store's dtype .* store_dtype: float32"):
            experiment.extract(store_dtype=dtype)
    assert experiment.run(store_dtype="float32")["cls"][0, 0] > 9e4


@pytest.mark.parametrize("store_dtype", ["float16", "int8"])
def test_the_thread_that_launches_work_reads_nothing_from_the_device(
    experiment: Any, monkeypatch: pytest.MonkeyPatch, store_dtype: str
) -> None:
    expected = {name: array[:] for name, array in experiment.run(store_dtype=store_dtype).items()}
    compute, calls = fill._compute, []

    def watched(*arguments: Any) -> None:
        calls.append(1)
        with no_waits():
            compute(*arguments)

    monkeypatch.setattr(fill, "_compute", watched)
    part = experiment.extract("watched", stores="s2", store_dtype=store_dtype)
    store = open_features(experiment.seal([part], "watched", stores="s2"))
    assert calls
    for name, array in expected.items():
        np.testing.assert_array_equal(store[name][:], array)
    log = (experiment.root / "extract.log").read_text()
    assert re.search(r"waited in \d+\.\d s: \d+% for input, \d+% for disk, \d+% for cpu", log)


def test_an_image_that_changed_or_vanished_is_named(experiment: Any) -> None:
    path = experiment.root / "data" / "pictures" / "bild_5_ä.png"
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    with pytest.raises(UserError, match="the image is not the file it was"):
        experiment.extract()
    path.unlink()
    with pytest.raises(UserError, match="the image cannot be read any more: no such file"):
        experiment.extract()


CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"batch": 4}, False),
    ({"tasks": 2}, False),
    ({"licence": "another"}, False),
    ({"chunk": 6, "batch": 3}, True),
    ({"dtype": "bfloat16"}, True),
    ({"store_dtype": "float32"}, True),
    ({"interpolation": "bicubic"}, True),
    ({"image_size": 24}, True),
    ({"source": "other"}, True),
]


def test_the_fingerprint_follows_what_decides_the_numbers(
    experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []  # Nothing is computed.
    monkeypatch.setattr(fill, "fill", lambda *_, **__: None)
    monkeypatch.setattr("vitcapr.store.sealing.write_part", lambda _, fingerprint, *__: made.append(fingerprint))

    def fingerprint(name: str, **change: Any) -> str:
        experiment.extract(name, **change)
        return made.pop()

    plain = fingerprint("a")
    for number, (change, another) in enumerate(CHANGES):
        assert (fingerprint(f"b{number}", **change) != plain) is another, change
    moved = tmp_path / "moved"
    experiment.manifest.parent.rename(moved)
    object.__setattr__(experiment, "manifest", moved / "manifest.json")
    assert fingerprint("moved") == plain
    monkeypatch.setattr("vitcapr.pipeline.run.code_hash", lambda _: "abc")
    assert fingerprint("code") != plain


def test_parts_that_do_not_fit_are_not_sealed(experiment: Any) -> None:
    parts = [experiment.extract("a", task, 3) for task in range(3)]
    (stores(experiment) / "checksums" / "000001.json").unlink()
    with pytest.raises(UserError, match="chunk 1 is missing or cut short"):
        experiment.seal(parts)
    other = experiment.extract("b", 2, 3, store_dtype="float32")
    stored = r"0.json and 2.json come from different stores: .*store_dtype float16 and float32"
    with pytest.raises(UserError, match=stored):
        experiment.seal([*parts[:2], other])
    arithmetic = r"dtype float32 and bfloat16 \(.*set dtype of the backbone to one of them, for all machines"
    with pytest.raises(UserError, match=arithmetic):
        experiment.seal([*parts[:2], experiment.extract("b", 2, 3, dtype="bfloat16")])
    with pytest.raises(UserError, match="tasks are counted from 0"):
        experiment.extract("c", 1, 1)


def test_a_store_of_other_images_is_not_sealed(experiment: Any) -> None:
    part = experiment.extract()
    with pytest.raises(UserError, match="holds other images"):
        replace(experiment, manifest=make_dataset(experiment.root / "other", 10)).seal([part])
    ids = open_features(experiment.seal([part])).ids
    chunk_path(stores(experiment) / "features.zarr" / "image_id", 0, 2).write_bytes(b"x")
    assert open_features(experiment.seal([part])).ids == ids
