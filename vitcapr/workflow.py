"""What the rules ask for: which stages an experiment has, their inputs, their settings and what makes them stale."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from vitcapr.config.base import Section, parse
from vitcapr.config.captioner import TrainCaptionerSettings
from vitcapr.config.data import CocoSettings, Flickr8kSettings, ScenesSettings
from vitcapr.config.decoding import DecodeSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import ExtractSettings, TrainBackboneSettings
from vitcapr.config.figures import FigureSettings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.config.text import VocabularySettings, WordVectorsSettings
from vitcapr.data.digests import content_digest
from vitcapr.errors import UserError
from vitcapr.files import canonical_json
from vitcapr.provenance import code_hash, stage_code

RESULTS = Path("results")
DIGEST_CACHE = RESULTS / ".digests.json"
TRAINED = "trained"

Wildcards = Any
"""Snakemake's wildcards of a job: attributes that are strings."""


@dataclass(frozen=True)
class Stage:
    """One stage command as a rule sees it.

    Args:
        module: the command's module below ``vitcapr.cli``.
        build: the stage's settings for given wildcards.
        incidental: dotted keys of the settings that say how the work is done and not what comes out; changing one of
            them re-runs nothing.
        sources: the user's own files that the stage reads, by the key that names them; their content counts, and
            neither their time nor their place.
    """

    module: str
    build: Callable[[Wildcards], Section]
    incidental: frozenset[str] = frozenset()
    sources: Callable[[Wildcards], dict[str, Path]] = lambda _: {}

    def settings(self, wildcards: Wildcards, threads: int) -> str:  # noqa: ARG002
        """The value of ``--settings``.

        It asks for ``threads`` because Snakemake does not take a parameter that does for a reason to run again:
        whether to is for :meth:`made_from` to say.
        """
        return canonical_json(self.build(wildcards).canonical())

    def made_from(self, wildcards: Wildcards) -> str:
        """All that the outputs depend on besides the declared inputs, as JSON: ``code, settings, sources``."""
        settings = self.build(wildcards).canonical()
        for key in self.incidental:
            _remove(settings, key.split("."))
        sources = {key: content_digest(path, DIGEST_CACHE, key=key) for key, path in self.sources(wildcards).items()}
        return canonical_json({"code": self.code, "settings": settings, "sources": sources})

    def code_hash(self, wildcards: Wildcards, threads: int) -> str:  # noqa: ARG002
        """For a command that keeps unfinished work beside its outputs and must know which code it is from."""
        return code_hash(f"vitcapr.cli.{self.module}")

    @property
    def code(self) -> dict[str, str]:
        return stage_code(f"vitcapr.cli.{self.module}")


@dataclass(frozen=True)
class Experiment:
    """A checked configuration, and the questions the rule files ask of it."""

    config: ExperimentConfig

    @classmethod
    def from_config(cls, values: Mapping[str, Any], where: object = "config.yaml") -> "Experiment":
        """Raises:
        UserError: a key is unknown or a value wrong, a file it names is missing, or the parts do not fit together.
        """
        experiment = cls(parse(ExperimentConfig, dict(values), where))
        experiment._check()
        return experiment

    def _check(self) -> None:
        trained = [name for name in self.backbones if self.is_trained(name)]
        if trained and not self.has_objects:
            raise UserError(
                f"backbones.{trained[0]} is to be trained here, which needs pictures whose objects are known",
                where=f"data.dataset: {self.config.data.dataset}",
                remedy="name a hub id or a folder as its source",
            )
        files = self.data_files(None)
        for name in self.word_vectors:
            files |= self._vector_files(name)
        for key, path in files.items():
            if not path.exists():
                raise UserError(
                    f"{key}: no such file or folder",
                    where=path,
                    remedy="give its path, from here or from the folder that VITCAPR_DATA names",
                )

    # What there is.

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        return f"{RESULTS}/{self.name}"

    @property
    def captioners(self) -> list[str]:
        return list(dict.fromkeys(self.config.run.captioners))

    @property
    def decodings(self) -> list[str]:
        return list(dict.fromkeys(self.config.run.decodings))

    @property
    def splits(self) -> list[str]:
        return list(dict.fromkeys(self.config.run.splits))

    @property
    def backbones(self) -> list[str]:
        """Those that a wanted captioner looks through."""
        return list(dict.fromkeys(self.config.captioners[name].backbone for name in self.captioners))

    @property
    def word_vectors(self) -> list[str]:
        """Those that a wanted captioner starts from."""
        wanted = (self.config.captioners[name].word_vectors for name in self.captioners)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    @property
    def has_objects(self) -> bool:
        """Whether the data set says which object is where."""
        return self.config.data.dataset == "scenes"

    @property
    def attentive_captioners(self) -> list[str]:
        return [name for name in self.captioners if self.config.captioners[name].architecture == "patch_attention"]

    @property
    def attentive_decodings(self) -> list[str]:
        return [name for name in self.decodings if self.config.decodings[name].attention]

    def is_trained(self, backbone: str) -> bool:
        return self.config.backbones[backbone].source == TRAINED

    @property
    def trains_backbone(self) -> bool:
        return any(self.is_trained(name) for name in self.backbones)

    def one_of(self, names: list[str]) -> str:
        """A wildcard's constraint: any of ``names``, or nothing at all when there is none."""
        return "|".join(names) if names else "(?!)"

    # What is wanted.

    def targets(self, folder: str, *files: str) -> list[str]:
        """``files`` under ``folder`` for every captioner, decoding and split."""
        return [
            f"{self.root}/{folder}/{captioner}/{decoding}/{split}/{file}"
            for captioner in self.captioners
            for decoding in self.decodings
            for split in self.splits
            for file in files
        ]

    def attention_targets(self, folder: str, *files: str) -> list[str]:
        """As :meth:`targets`, for those that keep their attention."""
        return [
            f"{self.root}/{folder}/{captioner}/{decoding}/{split}/{file}"
            for captioner in self.attentive_captioners
            for decoding in self.attentive_decodings
            for split in self.splits
            for file in files
        ]

    @property
    def features(self) -> list[str]:
        return [f"{self.root}/features/{name}/manifest.json" for name in self.backbones]

    @property
    def metrics(self) -> list[str]:
        grounded = self.attention_targets("metrics", "grounding.json") if self.has_objects else []
        return self.targets("metrics", "metrics.json") + grounded

    @property
    def figures(self) -> list[str]:
        return [
            *self.curve_pictures(self.root),
            *self.pictures(f"{self.root}/figures/text/vocabulary"),
            *self.pictures(f"{self.root}/figures/text/lengths"),
            *(
                picture
                for split in self.splits
                for picture in self.pictures(f"{self.root}/figures/captions/{split}/captions")
            ),
            *self.attention_targets("figures/attention", *self.attention_pictures("")),
        ]

    @property
    def formats(self) -> list[str]:
        return list(dict.fromkeys(self.config.figures.formats))

    def pictures(self, pattern: str) -> list[str]:
        """``pattern`` once for every figure format."""
        return [f"{pattern}.{suffix}" for suffix in self.formats]

    def attention_pictures(self, folder: str) -> list[str]:
        """The files of ``draw_attention``: one for every attended image and format."""
        numbers = range(1, self.config.figures.attended + 1)
        return [picture for number in numbers for picture in self.pictures(f"{folder}attention-{number}")]

    def curve_pictures(self, root: str) -> list[str]:
        """The files of ``draw_curves``: the captioners', and the backbone's where the DAG trains one."""
        names = ("curves", "backbone") if self.trains_backbone else ("curves",)
        return [picture for name in names for picture in self.pictures(f"{root}/figures/curves/{name}")]

    # What a job reads.

    def features_of(self, wildcards: Wildcards) -> str:
        """The sealed features that a captioner looks at."""
        backbone = self.config.captioners[wildcards.captioner].backbone
        return f"{self.root}/features/{backbone}/manifest.json"

    def word_vectors_of(self, wildcards: Wildcards) -> list[str]:
        name = self.config.captioners[wildcards.captioner].word_vectors
        return [] if name is None else [f"{self.root}/text/word_vectors/{name}/vectors.npy"]

    def word_vectors_option(self, wildcards: Wildcards) -> str:
        return " ".join(f"--word-vectors {path}" for path in self.word_vectors_of(wildcards))

    def vector_file(self, wildcards: Wildcards) -> str:
        return str(find_data(self.config.word_vectors[wildcards.vectors].path))

    def trained_backbone_of(self, wildcards: Wildcards) -> list[str]:
        """The weights that the DAG trains, for the backbones that are these."""
        if not self.is_trained(wildcards.backbone):
            return []
        files = ("config.json", "model.safetensors", "preprocessor_config.json")
        return [f"{self.root}/backbones/{TRAINED}/{file}" for file in files]

    def backbone_source(self, wildcards: Wildcards) -> str:
        """What ``extract --source`` is given: a hub id or a folder."""
        if self.is_trained(wildcards.backbone):
            return f"{self.root}/backbones/{TRAINED}"
        return self.config.backbones[wildcards.backbone].source

    def task_count(self, wildcards: Wildcards, threads: int) -> int:  # noqa: ARG002
        """How many tasks fill a store; like :meth:`Stage.settings`, no reason to run again."""
        return self.config.features.tasks

    def histories(self, _: Wildcards) -> list[str]:
        return [f"{self.root}/captioners/{name}/history.csv" for name in self.captioners]

    def histories_option(self, wildcards: Wildcards) -> str:
        named = zip(self.captioners, self.histories(wildcards), strict=True)
        return " ".join(f"--history {name}={path}" for name, path in named)

    def backbone_history(self, _: Wildcards) -> list[str]:
        return [f"{self.root}/backbones/{TRAINED}/history.csv"] if self.trains_backbone else []

    def backbone_history_option(self, wildcards: Wildcards) -> str:
        return " ".join(f"--backbone {path}" for path in self.backbone_history(wildcards))

    def captions_of_split(self, wildcards: Wildcards) -> list[str]:
        """What every captioner and decoding writes for one split."""
        return list(self._captions_by_name(wildcards.split).values())

    def captions_option(self, wildcards: Wildcards) -> str:
        return " ".join(f"--captions {name}={path}" for name, path in self._captions_by_name(wildcards.split).items())

    def _captions_by_name(self, split: str) -> dict[str, str]:
        return {
            f"{captioner}/{decoding}": f"{self.root}/captions/{captioner}/{decoding}/{split}/captions.json"
            for captioner in self.captioners
            for decoding in self.decodings
        }

    def parts_of(self, wildcards: Wildcards) -> list[str]:
        tasks = range(self.config.features.tasks)
        return [f"{self.root}/features/{wildcards.backbone}/parts/{task}.json" for task in tasks]

    def data_files(self, _: Wildcards) -> dict[str, Path]:
        """The user's files that the data set is read from, by their keys."""
        data = self.config.data
        if data.dataset == "flickr8k":
            text = find_data(data.flickr8k.text)
            # Beside a captions file that is named itself, the lists of the official splits are read too.
            lists = sorted(text.parent.glob("Flickr_8k.*Images.txt")) if text.is_file() else []
            return {
                "data.flickr8k.images": find_data(data.flickr8k.images),
                "data.flickr8k.text": text,
                **{f"data.flickr8k.text/{path.name}": path for path in lists},
            }
        if data.dataset == "coco":
            files = {"data.coco.images": find_data(data.coco.images)}
            if data.coco.karpathy:
                return files | {"data.coco.karpathy": find_data(data.coco.karpathy)}
            named = enumerate(data.coco.annotations)
            return files | {f"data.coco.annotations.{place}": find_data(name) for place, name in named}
        return {}

    def backbone_files(self, wildcards: Wildcards) -> dict[str, Path]:
        """The folder of a backbone that lies on this machine; a hub id's revision stands in the settings."""
        name = wildcards.backbone
        if self.is_trained(name):
            return {}
        source = self.config.backbones[name].source
        folder = _find(source, "VITCAPR_BACKBONES")
        return {f"backbones.{name}.source": folder} if folder.is_dir() else {}

    def _vector_files(self, name: str) -> dict[str, Path]:
        return {f"word_vectors.{name}.path": find_data(self.config.word_vectors[name].path)}

    # The stages.

    @cached_property
    def data(self) -> Stage:
        dataset = self.config.data.dataset
        builders: dict[str, Callable[[Wildcards], Section]] = {
            "scenes": lambda _: ScenesSettings(scenes=self.config.data.scenes),
            "flickr8k": self._flickr8k_settings,
            "coco": self._coco_settings,
        }
        return Stage(f"data_{dataset}", builders[dataset], sources=self.data_files)

    def _flickr8k_settings(self, _: Wildcards) -> Flickr8kSettings:
        data = self.config.data
        found = {"images": str(find_data(data.flickr8k.images)), "text": str(find_data(data.flickr8k.text))}
        return Flickr8kSettings(
            flickr8k=data.flickr8k.model_copy(update=found), on_bad_image=data.on_bad_image, max_pixels=data.max_pixels
        )

    def _coco_settings(self, _: Wildcards) -> CocoSettings:
        data = self.config.data
        found = {
            "images": str(find_data(data.coco.images)),
            "annotations": [str(find_data(name)) for name in data.coco.annotations],
            "karpathy": str(find_data(data.coco.karpathy)) if data.coco.karpathy else None,
        }
        return CocoSettings(
            coco=data.coco.model_copy(update=found), on_bad_image=data.on_bad_image, max_pixels=data.max_pixels
        )

    @cached_property
    def vocabulary(self) -> Stage:
        return Stage("vocabulary", lambda _: VocabularySettings(text=self.config.text))

    @cached_property
    def vectors(self) -> Stage:
        return Stage(
            "word_vectors",
            lambda w: WordVectorsSettings(word_vectors=self.config.word_vectors[w.vectors]),
            incidental=frozenset({"word_vectors.path"}),
            sources=lambda w: self._vector_files(w.vectors),
        )

    @cached_property
    def train_backbone(self) -> Stage:
        return Stage("train_backbone", lambda _: TrainBackboneSettings(training=self.config.trained_backbone))

    def _extract_settings(self, wildcards: Wildcards) -> ExtractSettings:
        return ExtractSettings(backbone=self.config.backbones[wildcards.backbone], features=self.config.features)

    @cached_property
    def extract(self) -> Stage:
        return Stage(
            "extract",
            self._extract_settings,
            incidental=frozenset({"features.tasks", "features.batch", "features.device"}),
            sources=self.backbone_files,
        )

    @cached_property
    def seal(self) -> Stage:
        return Stage("seal", lambda _: Section())

    @cached_property
    def train_captioner(self) -> Stage:
        return Stage(
            "train_captioner",
            lambda w: TrainCaptionerSettings(captioner=self.config.captioners[w.captioner], seed=self.config.seed),
            incidental=frozenset({"captioner.training.device", "captioner.training.save_every_steps"}),
        )

    @cached_property
    def decode(self) -> Stage:
        return Stage(
            "decode",
            lambda w: DecodeSettings(decoding=self.config.decodings[w.decoding]),
            incidental=frozenset({"decoding.device", "decoding.batch_images"}),
        )

    def _score_settings(self, _: Wildcards) -> ScoreSettings:
        return ScoreSettings(metrics=self.config.metrics, language=self.config.text.language)

    @cached_property
    def score(self) -> Stage:
        return Stage("score", self._score_settings, incidental=frozenset({"metrics.scorer_timeout"}))

    @cached_property
    def ground(self) -> Stage:
        # Grounding has no scorers of its own to choose: only the bootstrap concerns it.
        return Stage(
            "ground",
            self._score_settings,
            incidental=frozenset({"metrics.scorer_timeout", "metrics.metrics"}),
        )

    @cached_property
    def summary(self) -> Stage:
        return Stage("summary", lambda _: Section())

    def drawing(self, figure: str) -> Stage:
        """The stage ``draw_<figure>``."""
        return Stage(f"draw_{figure}", lambda _: FigureSettings(figures=self.config.figures))

    # What a job asks of the machine.

    def extract_gpus(self, _: Wildcards) -> int:
        return int(self.config.features.device != "cpu")

    def train_gpus(self, wildcards: Wildcards) -> int:
        return int(self.config.captioners[wildcards.captioner].training.device != "cpu")

    def decode_gpus(self, wildcards: Wildcards) -> int:
        return int(self.config.decodings[wildcards.decoding].device != "cpu")


def load_experiment(*configfiles: Path) -> Experiment:
    """The experiment of ``config.yaml`` with ``configfiles`` merged over it, as Snakemake merges them."""
    values: dict[str, Any] = {}
    for path in (Path("config.yaml"), *configfiles):
        _merge(values, read_yaml(path))
    return Experiment.from_config(values, where=configfiles[-1] if configfiles else "config.yaml")


def read_yaml(path: Path) -> dict[str, Any]:
    """Raises:
    UserError: the file is missing or is not a YAML mapping.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("no such configuration file", where=path) from error
    except yaml.YAMLError as error:
        raise UserError(f"not YAML: {error}", where=path) from error
    if not isinstance(values, dict):
        raise UserError("a configuration is a mapping of keys to values", where=path)
    return values


def find_data(name: str) -> Path:
    """Where a data file or folder of the configuration is: under VITCAPR_DATA, else where its path says."""
    return _find(name, "VITCAPR_DATA")


def use_this_python() -> None:
    """Make ``python`` in the rules the one that runs Snakemake, whether or not its environment is activated.

    A conda environment of a rule is activated after this and goes first.
    """
    folder = str(Path(sys.executable).parent)
    search = os.environ.get("PATH", "").split(os.pathsep)
    if search[:1] != [folder]:
        os.environ["PATH"] = os.pathsep.join([folder, *search])


def _find(name: str, variable: str) -> Path:
    shelf = os.environ.get(variable)
    if shelf and (Path(shelf) / name).exists():
        return Path(shelf) / name
    return Path(name)


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def _remove(values: dict[str, Any], key: list[str]) -> None:
    for part in key[:-1]:
        values = values[part]
    del values[key[-1]]
