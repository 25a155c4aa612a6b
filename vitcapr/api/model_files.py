"""The files that a trained model needs in its experiment: the model is ``results/<experiment>/<kind>s/<name>``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from vitcapr.config.captioner import DecodingConfig
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.config.experiment import AnyCaptionerConfig
from vitcapr.config.features import TRAINED, BackboneConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.model import CARD, WEIGHTS
from vitcapr.formats.records import read_record, reading
from vitcapr.formats.store_manifest import Digest, read_sealed
from vitcapr.loader import check_part
from vitcapr.pipeline.run_records import RUNS, Run, read_run
from vitcapr.stages.train_captioner import TrainCaptionerSettings
from vitcapr.stages.train_retriever import TrainRetrieverSettings
from vitcapr.store.writer import TERMS

if TYPE_CHECKING:
    from vitcapr.encoders.image_recipe import PhotographEncoder

Kind = Literal["captioner", "retriever"]

_SETTINGS: dict[Kind, type[TrainCaptionerSettings | TrainRetrieverSettings]] = {
    "captioner": TrainCaptionerSettings,
    "retriever": TrainRetrieverSettings,
}

_WIDTHS = ("feature_dim", "cls_dim")


class _Inputs(BaseModel):
    """Digests of what a model was trained on; those of its stores are fingerprints."""

    model_config = ConfigDict(strict=True, extra="allow")

    features: Digest
    augmented_views: list[Digest] = []
    text_features: Digest | None = None
    vocabulary: Digest


class _Pretrained(BaseModel):
    """A checkpoint that a model needs, and whose weights are not stored with it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: str
    revision: str | None
    weights_sha256: Digest | None


class _TextEncoder(_Pretrained):
    """The text encoder of a retriever that reads text features. Little is known of imported features."""

    output: Literal["hidden", "aligned", "word_vectors"]
    pool: Literal["modules.json", "mean", "cls", "last"] | None
    prompt: str | None = None
    max_length: Annotated[int, Field(ge=1)] | None
    dtype: str


class _Card(BaseModel):
    """The card of a model. It may come from a person who is not trusted; :attr:`ModelFiles.settings` has the rest."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    format: Literal["vitcapr-model-2"]
    architecture: dict[str, Any]
    backbone: Annotated[str, StringConstraints(pattern=r"^[^/]+$")]
    best_epoch: int
    best_score: dict[str, float]
    code: str
    extensions: dict[str, str] = {}
    inputs: _Inputs
    precision: str
    settings: dict[str, Any]
    text_encoder: _TextEncoder | None = None
    language_model: _Pretrained | None = None
    versions: dict[str, str]
    weights_sha256: Digest


@dataclass(frozen=True)
class ModelFiles:
    """A trained model and the files of its experiment.

    Attributes:
        card: as ``card.json`` has it; checked.
        model: the settings of the model.
        kind: the user's word for the model, for messages.
    """

    folder: Path
    card: Mapping[str, Any]
    model: AnyCaptionerConfig | RetrieverConfig
    kind: Kind

    @classmethod
    def open(cls, folder: Path, expected: Kind | None = None) -> Self:
        """Return the model in ``folder``.

        Raises:
            UserError: there is none of the expected kind, or its card is damaged.
        """
        path = folder / CARD
        card = read_record(path, TypeAdapter(_Card), "the card of a captioner or a retriever", "train the model")
        kind = next((kind for kind in _SETTINGS if kind in card.settings), None)
        if kind is None or kind != (expected or kind):
            what = f"this is no {expected or 'captioner or retriever'}"
            raise UserError(what, where=folder, remedy=f"it is a {kind or 'model of an extension'}")
        trained = card.settings[kind]
        if isinstance(trained, dict):  # How it was trained does not decide how it is opened; versions differ in keys.
            untrained = isinstance(how := trained.get("training"), dict) and how.get("phases") == []
            trained = {**trained, "training": {"phases": []} if untrained else {}}
            if isinstance(architecture := trained.get("architecture"), str):
                check_part("CAPTIONER", architecture, path)
        settings = parse(_SETTINGS[kind], {**card.settings, kind: trained}, path)
        return cls(folder, card.model_dump(), getattr(settings, kind), kind)

    @property
    def experiment(self) -> Path:
        return self.folder.resolve().parent.parent

    def check_architecture(self) -> None:
        """Check that the architecture of the card is that of its settings; imports torch."""
        from vitcapr.training.retriever import architecture_of

        with reading(self.folder / CARD, f"the card of a {self.kind}", "train the model"):
            given, model = self.card["architecture"], self.model
            if isinstance(model, RetrieverConfig):
                text = given["text"]
                widths = {"text_dim": text.get("feature_dim"), "vocabulary": text.get("vocabulary", 0)}
                image_dims = {name: given["image"][name] for name in _WIDTHS if name in given["image"]}
                expected = architecture_of(model, image_dims, **widths)
            else:
                sizes = {name: given[name] for name in ("vocabulary", *_WIDTHS) if name in given}
                expected = {"kind": model.architecture, **sizes, **model.described()}
            if given != expected:
                raise ValueError("its architecture and its settings differ")

    @property
    def vocabulary(self) -> Path:
        """The vocabulary.json that the model was trained with.

        Raises:
            UserError: it is missing or differs from the model's.
        """
        name = self.folder.resolve().name
        folder = "text" if isinstance(self.model, RetrieverConfig) else self.model.words.format(captioner=name)
        path = self.file(f"{folder}/vocabulary.json", "vocabulary")
        if sha256_file(path) != self.card["inputs"]["vocabulary"]:
            raise self._other("with another vocabulary", path)
        return path

    def stores(self, features: str | Path | None = None) -> list[Path]:
        """Return the sealed manifests of the image features that the model was trained on.

        Those of its backbone come first, then those of its augmented views. ``features``, in place of those of its
        backbone, may hold other pictures, if all else is as in the experiment's own.

        Raises:
            UserError: one is missing or describes other features.
        """
        names = [self.card["backbone"], *getattr(self.model, "augmented_views", [])]
        fingerprints = [self.card["inputs"]["features"], *self.card["inputs"]["augmented_views"]]
        if len(names) != len(fingerprints):
            what = f"its settings have {len(names) - 1} augmented views, and it was trained with others"
            raise UserError(what, where=self.folder / CARD, remedy="train the model")
        paths: list[Path] = []
        for name, fingerprint in zip(names, fingerprints, strict=True):
            own = self.experiment / f"features/{name}/manifest.json"
            path = self.file(f"features/{name}/manifest.json", "features", None if paths else features)
            if read_sealed(path)["fingerprint"] != fingerprint and not _same_recipe(path, own, fingerprint):
                raise self._other("on other features", path)
            paths.append(path)
        return paths

    @property
    def text_features(self) -> Path | None:
        """The sealed manifest of the text features that a retriever reads; None if it reads none."""
        encoder = getattr(getattr(self.model, "text", None), "encoder", None)
        return encoder and self.file(f"text_features/{encoder}/manifest.json", "text features")

    def _other(self, what: str, path: Path) -> UserError:
        remedy = "give what it was trained with, or train it again"
        return UserError(f"the {self.kind} was trained {what}", where=path, remedy=remedy)

    def encoders(self, stores: Sequence[Path], device: Any, backbone: str | None) -> "list[PhotographEncoder]":
        """Return the encoders that compute the features of photographs, one for each store; imports torch."""
        from vitcapr.encoders.image_recipe import open_like

        with reading(self.folder, f"a {self.kind} with its backbone", "publish it"):
            attributes = [read_sealed(path)["attributes"] for path in stores]
            if any("imported" in one for one in attributes):
                what = "new photographs need the network of its image features, and these were imported"
                raise UserError(what, where=self.folder, remedy="caption the images of its data set (run.splits)")
            return [open_like(one, device, self._backbone(backbone, one), self.model.layer) for one in attributes]

    def _backbone(self, given: str | None, attributes: Mapping[str, Any]) -> str | None:
        """Return the path of the features' backbone, if it differs from its name.

        A store names a folder without its place. The run record of the extraction has the place on this machine.
        """
        if given is None and attributes["backbone"] == TRAINED:
            return str(self.file(f"backbones/{TRAINED}/config.json", "backbone").parent)
        return given or _folder_of_extraction(self.experiment, attributes["backbone"])

    def file(self, place: str, what: str, given: str | Path | None = None) -> Path:
        """Return the file ``given``, or the one at ``place`` in the experiment."""
        path = self.experiment / place if given is None else Path(given)
        if path.is_dir():
            path = path / "manifest.json"
        if not path.is_file():
            remedy = "the model has to lie in the folder of its experiment, EXPERIMENT/KIND/NAME"
            raise UserError(f"{what} of the {self.kind} not found", where=path, remedy=remedy)
        return path


def _folder_of_extraction(experiment: Path, name: str) -> str | None:
    """Return the folder of a backbone that the experiment named by its whole path, if it is still there."""
    for path in sorted((experiment / RUNS / "extract").glob("*.json")):
        with suppress(UserError):
            source = parse(BackboneConfig, read_run(path).settings.get("backbone"), path).source
            if Path(source).is_absolute() and Path(source).name == name and Path(source).is_dir():
                return source
    return None


def _same_recipe(path: Path, own: Path, fingerprint: str) -> bool:
    """Return whether a store holds other pictures than the experiment's own, and is the same otherwise."""
    if not own.is_file() or (sealed := read_sealed(own))["fingerprint"] != fingerprint:
        return False
    own_recipe, recipe = (
        {key: value for key, value in attributes.items() if key not in ("fingerprint", "images_sha256", TERMS)}
        for attributes in (sealed["attributes"], read_sealed(path)["attributes"])
    )
    return own_recipe == recipe


def decoding_runs(captioner: Path) -> Iterator[Run]:
    """Yield the sound records of the captions that the experiment generated with the captioner in a folder."""
    folder = captioner.resolve()
    for path in sorted((folder.parent.parent / RUNS).glob("decode*/*.json")):
        with suppress(UserError):
            run = read_run(path)
            if f"captioners/{folder.name}/{WEIGHTS}" in map(run.place, run.inputs):
                yield run


def _decodings(captioner: Path) -> dict[str, DecodingConfig]:
    """Return the decodings of these captions, by name: ``beam`` of ``captions/attention/beam/test/captions.json``."""
    decodings = {}
    for run in decoding_runs(captioner):
        with suppress(UserError):
            name = PurePosixPath(next(iter(run.outputs))).parts[-3]
            decodings[name] = parse(DecodingConfig, run.settings.get("decoding", {}), run.path)
    return decodings


def choose_decoding(captioner: Path, name: str | None, **changes: Any) -> tuple[str, DecodingConfig]:
    """Return the decoding for new images, and its name.

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
            values["n_best"] = max(1, min(values["n_best"], values["beam_size"]))
    return name, parse(DecodingConfig, values, where=f"decoding {name}" if name else "decoding")
