"""Audits of stores with planted faults: each store has the attributes of a sound one and other numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from transformers import BertTokenizer, ViTModel

from tests.checkpoints import (
    PROCESSOR,
    Experiment,
    extract_text,
    flip_bit,
    make_dataset,
    run_features,
    save_bert,
    save_checkpoint,
    tiny_vit,
)
from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.commands.accept import compare_rows
from vitcapr.formats.audit_files import Audit
from vitcapr.store.reader import FeatureStore, open_features

Arrays = dict[str, np.ndarray]


def arrays_of(store: FeatureStore) -> Arrays:
    return {name: array[:] for name, array in store.items()}


def forged(store: FeatureStore, arrays: Arrays, root: Path) -> Path:
    """A store of these numbers that says of itself what ``store`` says."""
    shaped = {name: arrays[name].astype(store[name].dtype) for name in store}
    return write_store(root / "forged", shaped, store.ids, store.identity, **store.attributes)


def audit(sealed: Path, data: Path, *options: object) -> str:
    return run_features("audit", sealed, "--data", data, "--seed", 0, *options)


def statement(sealed: Path) -> dict[str, Any]:
    with open_features(sealed) as store:
        content: dict[str, Any] = json.loads((store.path.parent / "audit.json").read_text())
    return content


def of_checkpoint(experiment: Experiment, model: ViTModel, **processor: object) -> Arrays:
    folder = save_checkpoint(model, experiment.root / "changed", {**PROCESSOR, **processor})
    return arrays_of(replace(experiment, backbone=folder).run("other"))


def older() -> ViTModel:
    """Every weight a little different."""
    model = tiny_vit()
    for parameter in model.parameters():
        parameter.data *= 1.2
    return model


def channels_swapped(experiment: Experiment) -> Arrays:
    folder, names = experiment.root / "bgr", [f"{number}_ä" for number in range(11)]
    for path in (experiment.root / "data" / "pictures").iterdir():
        (folder / "pictures").mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(Image.open(path))[..., ::-1]).save(folder / "pictures" / path.name)
    lines = [(name, "en", "noise") for name in names]
    file = "bild_{}.png".format
    manifest = write_data_set(folder, dict.fromkeys(names, "train"), lines, "noise", folder / "pictures", file)
    return arrays_of(Experiment(experiment.root, manifest, experiment.backbone).run("other"))


def at_layer_one(experiment: Experiment) -> Arrays:
    store = experiment.run("other", layers=[1], store_dtype="float32")
    return {"cls": store["cls_1"][:], "patches": store["patches_1"][:]}


def overflowing(arrays: Arrays) -> Arrays:
    arrays["cls"][3, 2] = np.inf
    return arrays


IMAGE_FAULTS: dict[str, tuple[Callable[[Experiment, Arrays], Arrays], str]] = {
    "swapped": (
        lambda _, a: {n: x[[0, 1, 2, 4, 3, *range(5, 11)]] for n, x in a.items()},
        "rows are swapped: the featu",
    ),
    "order": (lambda _, a: {n: np.roll(x, 1, axis=0) for n, x in a.items()}, "the order of the rows is another"),
    "crop": (
        lambda e, _: of_checkpoint(e, tiny_vit(), size={"shortest_edge": 18}, crop_size=16, do_center_crop=True),
        "shorter side resized to 18, then cropped",
    ),
    "resize": (lambda e, _: of_checkpoint(e, tiny_vit(), resample=3), "resized with bicubic interpolation"),
    "mean": (lambda e, _: of_checkpoint(e, tiny_vit(), image_mean=[0.5] * 3, image_std=[0.5] * 3), "one half as mean"),
    "scale": (lambda e, _: of_checkpoint(e, tiny_vit(), do_rescale=False), "pixels from 0 to 255"),
    "mirrored": (lambda e, _: arrays_of(e.run("other", mirror=True)), "mirrored"),
    "bgr": (lambda e, _: channels_swapped(e), "BGR instead of RGB"),
    "layer": (lambda e, _: at_layer_one(e), "layer 1"),
    "arithmetic": (lambda e, _: arrays_of(e.run("other", dtype="bfloat16")), "arithmetic in bfloat16"),
    "rounded": (
        lambda _, a: {n: x.astype(np.float16).astype(np.float32) for n, x in a.items()},
        "rounded to float16",
    ),
    "normalised": (
        lambda _, a: {n: x / np.linalg.norm(x, axis=-1, keepdims=True) for n, x in a.items()},
        "scaled to length 1",
    ),
    "overflow": (lambda _, a: overflowing(a), "float16 overflow"),
    "older": (lambda e, _: of_checkpoint(e, older()), "such as those of an older checkpoint"),
    "unrelated": (
        lambda _, a: {n: np.random.default_rng(0).normal(size=x.shape) for n, x in a.items()},
        "or another network",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, FeatureStore]:
    """An experiment and its sound store."""
    root = tmp_path_factory.mktemp("made")
    backbone = save_checkpoint(tiny_vit(), root / "noise-vit")
    experiment = Experiment(root, make_dataset(root / "data", 11), backbone)
    return experiment, experiment.run(store_dtype="float32")


@pytest.mark.parametrize("fault", IMAGE_FAULTS)
def test_a_fault_of_image_features_is_named(made: tuple[Experiment, FeatureStore], fault: str, tmp_path: Path) -> None:
    (experiment, sound), (plant, name) = made, IMAGE_FAULTS[fault]
    sealed = forged(sound, plant(experiment, arrays_of(sound)), tmp_path)
    with pytest.raises(UserError, match="the store is not what its recipe says") as raised:
        audit(sealed, experiment.manifest, "--backbone", experiment.backbone)
    assert name in str(raised.value)
    stated = statement(sealed)
    assert (stated["verdict"], stated["sample"], name in stated["fault"]) == ("different", list(range(11)), True)
    if fault == "swapped":
        assert stated["bad"] == [3, 4]
        assert "'3_ä' in the row of '4_ä'" in stated["fault"]


def test_a_sound_store_is_equal_and_says_what_its_sample_proves(experiment: Experiment) -> None:
    for store in (experiment.run(), experiment.run("int8", store_dtype="int8", layers=[1, 2], patches=1)):
        sealed = store.manifest_path
        printed = audit(sealed, experiment.manifest.parent, "--backbone", experiment.backbone, "--sample", 5)
        stated = statement(sealed)
        assert (stated["verdict"] in ("equal", "rounding"), stated["fault"], stated["bad"]) == (True, None, [])
        assert (len(stated["sample"]), stated["seed"], stated["error"] < 1e-4) == (5, 0, True)
        assert stated["fingerprint"] == store.fingerprint
        assert "5 of 11 rows; at most 45.1% of all rows are bad (95 %)" in printed  # 1 - 0.05^(1/5)
        assert f"audit {printed.strip()}; Linux" in " ".join(run_features("info", sealed).split())


def test_the_bound_of_64_clean_rows() -> None:
    clean = Audit("f", "c", "w", 8000, 0, tuple(range(64)), "rounding", None, (), 2e-7, 1e-3, "m")
    assert clean.summary() == (
        "equal but for rounding (at most 2.0e-07) in 64 of 8,000 rows; at most 4.6% of all rows are bad (95 %)"
    )


def test_another_checkpoint_proves_the_store_or_nothing(experiment: Experiment, tmp_path: Path) -> None:
    sound = experiment.run(store_dtype="float32")
    sealed = forged(sound, of_checkpoint(experiment, older()), tmp_path)
    another = save_checkpoint(tiny_vit(hidden_act="relu"), tmp_path / "another")
    with pytest.raises(UserError, match=r"the recipe names the weights .* and this checkpoint has .* one is older"):
        audit(sealed, experiment.manifest, "--backbone", another)
    assert not list(tmp_path.rglob("audit.json"))  # Nothing is proved, and nothing is said of the store.
    with pytest.raises(UserError, match=r"computed with the weights [0-9a-f]{64}, which are not those of its recipe"):
        audit(sealed, experiment.manifest, "--backbone", save_checkpoint(older(), tmp_path / "real"))


def test_an_imported_store_has_no_recipe(experiment: Experiment, tmp_path: Path) -> None:
    ids = [f"{number}_ä" for number in range(11)]
    sealed = write_store(tmp_path, {"cls": np.zeros((11, 3), np.float32)}, ids)
    assert "'cls' and photographs are not decided" in audit(sealed, experiment.manifest)
    assert not (sealed.parent / "audit.json").exists()


def test_an_audit_travels_with_its_store(experiment: Experiment, tmp_path: Path) -> None:
    sealed = experiment.run().manifest_path
    audit(sealed, experiment.manifest, "--backbone", experiment.backbone)
    run_features("push", sealed, tmp_path / "elsewhere")
    run_features("pull", tmp_path / "elsewhere", tmp_path / "here")
    assert json.loads((tmp_path / "here" / "audit.json").read_text()) == statement(sealed)
    assert "in 11 of 11 rows" in run_features("info", tmp_path / "here")
    (tmp_path / "here" / "audit.json").unlink()
    for other in ({"content_sha256": "0" * 64}, {"sample": []}, {"rows": "many"}):  # Of other bytes; no audits.
        (tmp_path / "elsewhere" / "audit.json").write_text(json.dumps(statement(sealed) | other))
        run_features("pull", tmp_path / "elsewhere", tmp_path / "here")
        assert not (tmp_path / "here" / "audit.json").exists()


def test_a_store_of_older_code_is_accepted_if_its_rows_are_those_of_today(experiment: Experiment) -> None:
    old = experiment.run("old")
    compare = partial(compare_rows, old.manifest_path, experiment.manifest, str(experiment.backbone))
    assert compare() == ("", "equal bytes in 11 of 11 rows; at most 0.0% of all rows are bad (95 %)")
    swapped = experiment.root / "swapped/manifest.json"
    arrays = {name: array[:][::-1].copy() for name, array in old.arrays.items()}
    kept = {name: value for name, value in old.attributes.items() if name != "fingerprint"}
    write_store(experiment.root / "swapped", arrays, old.ids, sealed="manifest.json", **kept)
    assert "the order of the rows is another" in compare_rows(swapped, *compare.args[1:])[0]
    flip_bit(experiment.backbone / "model.safetensors", -1)
    assert "the recipe names the weights" in compare()[0]


WORDS = ["A", "a", "Dog", "dog", "Runs", "runs", "query", ":", "."]


def caption(number: int) -> str:
    return " ".join(["A", "Dog", "Runs", "a", "dog", "runs", ".", "A", "dog"][: 3 + number % 7])


@pytest.fixture
def captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of seven captions, and a cased text encoder, ``cased``, among the backbones."""
    folder = save_bert(tmp_path / "backbones" / "cased", WORDS)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary = {word: number for number, word in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary, do_lower_case=False).save_pretrained(folder)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(folder.parent))
    lines = [(f"i{number}", "en", caption(number)) for number in range(7)]
    return write_data_set(tmp_path / "data", {name: "train" for name, *_ in lines}, lines)


def in_lower_case(root: Path) -> Path:
    lines = [(f"i{number}", "en", caption(number).lower()) for number in range(7)]
    return write_data_set(root / "lower", {name: "train" for name, *_ in lines}, lines)


def encode(data: Path, out: Path, **settings: object) -> FeatureStore:
    settings = {"dtype": "float32", "store_dtype": "float32", "max_length": 16, **settings}
    return open_features(extract_text(data, "cased", out, **settings))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"lower": True}, "captions in lower case"),
        ({"prompt": "query: "}, "prompt 'query: '"),
        ({"pool": "cls"}, "pool: cls"),
        ({"pool": "last"}, "pool: last"),
        ({"max_length": 8}, "captions cut at 8 tokens"),
        ({"dtype": "bfloat16"}, "arithmetic in bfloat16"),
        ({"swapped": True}, "rows are swapped"),
        ({}, None),
    ],
)
def test_a_fault_of_text_features_is_named(
    captions: Path, tmp_path: Path, settings: dict[str, Any], name: str | None
) -> None:
    sound = encode(captions, tmp_path / "sound")
    lower, swapped = settings.pop("lower", False), settings.pop("swapped", False)
    data = in_lower_case(tmp_path) if lower else captions
    arrays = arrays_of(encode(data, tmp_path / "other", **settings))
    sealed = forged(sound, {"text": arrays["text"][[0, 1, 3, 2, 4, 5, 6]]} if swapped else arrays, tmp_path)
    if name is None:
        assert "in 7 of 7 rows; at most 0.0%" in audit(sealed, captions)
        return
    with pytest.raises(UserError) as raised:
        audit(sealed, captions)
    assert name in str(raised.value)
    if name.startswith("captions cut"):  # Only captions that are longer differ.
        assert statement(sealed)["bad"] == [number for number in range(7) if 3 + number % 7 + 2 > 8]
