"""Finds the files that a trained model needs in its experiment: the model is ``results/<experiment>/<kind>/<name>``."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vitcapr.config.base import parse
from vitcapr.config.decoding import DecodingConfig
from vitcapr.config.features import TRAINED, BackboneConfig
from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.model import WEIGHTS
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.pipeline.records import RUNS, read_run
from vitcapr.store.layout import GROUP, STORE_NAME_LENGTH
from vitcapr.store.writer import TERMS


@dataclass(frozen=True)
class ModelFiles:
    """The files of the experiment that trained the model in ``folder``.

    Attributes:
        card: the model's.
        kind: the user's word for the model, for messages.
    """

    folder: Path
    card: Mapping[str, Any]
    kind: str

    @property
    def experiment(self) -> Path:
        return self.folder.resolve().parent.parent

    def vocabulary(self, given: str | Path | None) -> Path:
        """The vocabulary.json that the model was trained with.

        Raises:
            UserError: it is missing or differs from the model's.
        """
        path = self.file(given, "text/vocabulary.json", "--vocabulary")
        if sha256_file(path) != self.card["inputs"]["vocabulary"]:
            raise self._other("with another vocabulary", path)
        return path

    def stores(self, features: str | Path | None, views: Sequence[str | Path] | None = None) -> list[Path]:
        """The sealed manifests of the image features that the model was trained on.

        Those of its backbone come first, then those of its augmented views; None for the experiment's own.

        Raises:
            UserError: one is missing or describes other features.
        """
        names = [self.card["backbone"], *(self.card["settings"][self.kind].get("augmented_views") or [])]
        fingerprints = [self.card["inputs"]["features"], *(self.card["inputs"].get("augmented_views") or [])]
        given = [features, *(views or itertools.repeat(None, len(names) - 1))]
        if len(given) != len(names):
            what = f"the {self.kind} uses {len(names) - 1} augmented views, but {len(given) - 1} are given"
            raise UserError(what, where=self.folder, remedy="give --augmented-views once for each")
        paths: list[Path] = []
        for name, fingerprint, one in zip(names, fingerprints, given, strict=True):
            option = "--augmented-views" if paths else "--features"
            path = self.file(one, f"features/{name}/manifest.json", option)
            sealed = read_sealed(path)
            if sealed["fingerprint"] != fingerprint and not (one and _same_recipe(path, sealed, fingerprint)):
                raise self._other("on other features", path)
            paths.append(path)
        return paths

    def _other(self, what: str, path: Path) -> UserError:
        remedy = "give what it was trained with, or train it again"
        return UserError(f"the {self.kind} was trained {what}", where=path, remedy=remedy)

    def backbone(self, given: str | None, attributes: Mapping[str, Any]) -> str | None:
        """The path of the features' backbone, if it differs from its name.

        A store names a folder without its place. The run record of the extraction has the place on this machine.
        """
        if given is None and attributes["backbone"] == TRAINED:
            return str(self.experiment / "backbones" / TRAINED)
        return given or _folder_of_extraction(self.experiment, attributes["backbone"])

    def file(self, given: str | Path | None, place: str, option: str) -> Path:
        """The file ``given``, or the one at ``place`` in the experiment."""
        path = self.experiment / place if given is None else Path(given)
        if path.is_dir() and place.endswith("manifest.json"):
            path = path / "manifest.json"
        if not path.is_file():
            raise UserError(
                f"the {self.kind}'s {option.removeprefix('--')} is not there", where=path, remedy=f"give {option}"
            )
        return path


def _folder_of_extraction(experiment: Path, name: str) -> str | None:
    """The folder of a backbone, as the experiment named it with its whole path; None if it did not, or it has moved."""
    for path in sorted((experiment / RUNS / "extract").glob("*.json")):
        with suppress(UserError):
            source = parse(BackboneConfig, read_run(path).settings.get("backbone"), path).source
            if Path(source).is_absolute() and Path(source).name == name and Path(source).is_dir():
                return source
    return None


def _same_recipe(path: Path, sealed: Mapping[str, Any], fingerprint: str) -> bool:
    """Whether a store holds other pictures than the store with ``fingerprint`` beside it, and is the same otherwise."""
    group = (path.parent / sealed["store"]).resolve()
    trained_on = group.parent.parent / fingerprint[:STORE_NAME_LENGTH] / GROUP / "zarr.json"
    if not trained_on.is_file():
        return False
    other = read_json(trained_on)["attributes"]
    return _recipe(other) == _recipe(sealed["attributes"])


def _recipe(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key not in ("fingerprint", "images_sha256", TERMS)}


def decoding_records(captioner: Path) -> Iterator[Path]:
    """The run records of the captions that the experiment generated with this captioner, without damaged records.

    Args:
        captioner: ``results/<experiment>/captioners/<name>``.
    """
    folder = captioner.resolve()
    for path in sorted((folder.parent.parent / RUNS).glob("decode*/*.json")):
        with suppress(UserError):
            run = read_run(path)
            if f"captioners/{folder.name}/{WEIGHTS}" in map(run.place, run.inputs):
                yield path


def _decodings(captioner: Path) -> dict[str, DecodingConfig]:
    """The decodings of these captions, by name: ``beam`` of ``captions/attention/beam/test/captions.json``."""
    decodings = {}
    for path in decoding_records(captioner):
        run = read_run(path)
        with suppress(UserError):
            name = PurePosixPath(next(iter(run.outputs))).parts[-3]
            decodings[name] = parse(DecodingConfig, run.settings.get("decoding", {}), path)
    return decodings


def choose_decoding(captioner: Path, name: str | None, **changes: Any) -> tuple[str, DecodingConfig]:
    """The decoding for new images, and its name.

    Args:
        captioner: the folder of the captioner.
        name: None for the experiment's decoding with the widest beam, or the defaults if the experiment has none. A
            decoding that samples is taken only where no other is.
        changes: values that differ from that decoding; None for no change. More candidates widen the beam, unless its
            size is given too. The size of a beam replaces sampling.

    Raises:
        UserError: the experiment has no such decoding, or the values do not agree.
    """
    known = _decodings(captioner)
    if name is None:
        name = max(sorted(known), key=lambda one: (known[one].sampling is None, known[one].beam_size), default="")
    elif name not in known:
        remedy = f"it has {', '.join(sorted(known))}" if known else "leave out --decoding"
        raise UserError(f"the experiment has no decoding '{name}' of this captioner", where=captioner, remedy=remedy)
    values = known.get(name, DecodingConfig()).canonical()
    values |= {key: value for key, value in changes.items() if value is not None}
    if changes.get("beam_size") is None:
        if "beam_size" in values:
            values["beam_size"] = max(values["beam_size"], values["n_best"])
    else:
        values["sampling"] = None
        if changes.get("n_best") is None:
            values["n_best"] = min(values["n_best"], values["beam_size"])
    return name, parse(DecodingConfig, values, where=f"decoding {name}" if name else "decoding")
