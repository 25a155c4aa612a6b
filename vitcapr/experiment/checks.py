"""Problems that would end a run of an experiment, reported before it starts."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from vitcapr.config.base import find_backbone
from vitcapr.config.training import CaptionerPhaseConfig
from vitcapr.data.remarks import EMPTY_SPLIT
from vitcapr.encoders import checkpoint_kinds
from vitcapr.encoders.checkpoint_kinds import (
    OPEN_CLIP_CONFIG,
    check_image_encoder,
    check_text_encoder,
)
from vitcapr.errors import UserError
from vitcapr.experiment.paths import can_only_be_a_folder, gpu_exists, stores_root
from vitcapr.formats.store_manifest import arrays_of_layer, read_sealed
from vitcapr.loader import ask, sections_to_run
from vitcapr.training.phases import images_in_batch, warmup_steps

if TYPE_CHECKING:
    from vitcapr.experiment.experiment import Experiment


PATIENCE = 5.0
"""Seconds that the hub has to answer."""
CONFIGURATIONS = ("config.json", OPEN_CLIP_CONFIG)


def problems(experiment: "Experiment") -> Iterator[UserError]:
    """Yield the problems of the files and checkpoints that an experiment names."""
    config, run, models = experiment.config, experiment.config.run, experiment.models
    sections = ["captioners", "retrievers", *sections_to_run()]
    if not models.data_alone and not any(run.named(section) for section in sections):
        yield UserError(
            "the experiment names nothing to run",
            where=config.experiment,
            remedy=f"name something under {', '.join(sections[:-1])} or {sections[-1]}",
        )
    yield from _read_only_folders(experiment)
    for name in models.backbones:
        if models.is_trained(name) and not experiment.dataset.has_objects:
            yield UserError(
                f"backbones.{name}: source 'trained' needs a data set with object masks",
                where=f"data.dataset: {config.data.dataset}",
                remedy="name a hub id or a folder as its source",
            )
    for key, path in experiment.user_files.items():
        if not path.exists():
            remedy = "give its path, from here or from the folder that VITCAPR_DATA names"
            yield UserError(f"{key}: no such file or folder", where=path, remedy=remedy)
        elif path.is_dir() and experiment.results.resolve().is_relative_to(path.resolve()):
            remedy = "put the photographs into a folder of their own, because each result would change it"
            yield UserError(f"{key}: the folder contains the results", where=path, remedy=remedy)
    yield from _without_encoder(experiment)
    unsound = []
    for key, source, _, check in _checkpoints(experiment):
        # A checkpoint of the hub is not known before it is fetched.
        if (folder := find_backbone(source)).is_dir():
            try:
                check(folder)
            except UserError as error:
                unsound.append(UserError(f"{key}: {error.what}", where=error.where, remedy=error.remedy))
    try:
        yield from unsound or _unreadable_features(experiment)
    except UserError as error:
        yield error


def lacks(experiment: "Experiment", jobs: Sequence[str] | None = None) -> Iterator[UserError]:
    """Yield the problems of this machine, which a plan does not need to solve: GPU, libraries and checkpoints.

    Args:
        jobs: the fingerprints of the jobs that will run. A checkpoint that none of them names is not looked for.
    """
    if experiment.config.device == "cuda" and not (experiment.on_cluster or gpu_exists()):
        yield UserError("no GPU is on this machine", where="device: cuda", remedy="set device to auto or cpu")
    yield from _missing_libraries(experiment)
    yield from _missing_checkpoints(experiment, jobs)


def _missing_checkpoints(experiment: "Experiment", jobs: Sequence[str] | None) -> Iterator[UserError]:
    """Yield the checkpoints that neither a folder nor the cache of the hub has and that the hub does not offer.

    The hub is asked for all of them at once, for at most ``PATIENCE`` seconds. Features that are sealed need none.
    """
    models, features = experiment.models, experiment.results / experiment.name / "features"
    spared = set[Any]()
    for name in models.extracted:
        with suppress(UserError):  # Not extracted yet, or a damaged file that the run makes again.
            spared.add(read_sealed(features / name / "manifest.json")["attributes"].get("backbone"))
    revisions = {
        source: revision
        for source, revision in checkpoint_sources(experiment).items()
        if source not in spared and not find_backbone(source).is_dir()
        if jobs is None or any(json.dumps(source) in job for job in jobs)
        if not can_only_be_a_folder(source) and not source.startswith("timm:")
    }
    answers: dict[str, str | None] = {}

    def ask_hub(source: str) -> None:
        answers[source] = _answer_of_the_hub(source, revisions[source])

    threads = [Thread(target=ask_hub, args=(source,), daemon=True) for source in revisions]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    for source, revision in revisions.items():
        if (what := answers.get(source, f"the hub does not answer in {PATIENCE:g} s")) is not None:
            remedy = "put the checkpoint's folder under VITCAPR_BACKBONES, or fetch it where the hub can be reached"
            yield UserError(f"checkpoint '{source}': {what}", where=f"revision {revision}", remedy=remedy)


def _answer_of_the_hub(source: str, revision: str) -> str | None:
    """Return why a checkpoint cannot be had; None if it can. Nothing is downloaded."""
    from huggingface_hub import HfApi, constants, errors, snapshot_download

    with suppress(errors.LocalEntryNotFoundError, errors.HFValidationError):
        folder = snapshot_download(source, revision=revision, local_files_only=True)
        if any(path.name in CONFIGURATIONS for path in Path(folder).iterdir()):
            return None
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set, and the cache of the hub does not hold it"
    try:
        HfApi().model_info(source, revision=revision, timeout=PATIENCE)
    except errors.GatedRepoError:
        return "its owner asks for your agreement on the hub, then for hf auth login"
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError):
        return "the hub has no such model, or not this revision"
    except Exception as error:  # The client of the hub has many errors for a network that fails.
        return f"the hub cannot be reached ({type(error).__name__})"
    return None


def _missing_libraries(experiment: "Experiment") -> Iterator[UserError]:
    """Yield the optional libraries that the experiment needs and this environment lacks."""
    config, models = experiment.config, experiment.models
    needed: dict[str, str] = {}
    extras: dict[str, str] = {}
    for name in models.trained_captioners:
        for key, (library, extra) in config.captioners[name].libraries.items():
            needed[f"captioners.{name}.{key}"], extras[library] = library, extra
    sources = {f"backbones.{name}.source": config.backbones[name].source for name in models.extracted}
    needed |= {key: "timm" for key, source in sources.items() if source.startswith("timm:")}
    for key, source, *_ in _checkpoints(experiment):
        encoder = config.text_encoders.get(key.removeprefix("text_encoders."))
        pooled = encoder is not None and (encoder.output, encoder.pool) == ("hidden", "auto")
        if (folder := find_backbone(source)).is_dir() and (package := checkpoint_kinds.library(folder, pooled)):
            needed[f"{key}.source"] = package.partition(" ")[0].removesuffix("-torch").replace("-", "_")
    for key, library in needed.items():
        if find_spec(library) is None:
            remedy = f"pip install 'vitcapr[{extras.get(library, library.replace('_', '-'))}]'"
            yield UserError(f"the library {library} is not installed", where=key, remedy=remedy)


def _read_only_folders(experiment: "Experiment") -> Iterator[UserError]:
    folders = [
        experiment.results / experiment.name,
        *([stores_root(experiment.results)] if experiment.models.extracted else []),
    ]
    for folder in dict.fromkeys(path.resolve() for path in folders):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            what, remedy = "the results cannot be written", "make this folder writable, or work in another one"
            yield UserError(what, where=there, remedy=remedy)


def _unreadable_features(experiment: "Experiment") -> Iterator[UserError]:
    """Yield an error for each array that a model reads and that a store lacks or has in a shape that does not fit.

    Raises:
        UserError: an adopted store does not exist, or a network has fewer patches than are to be stored.
    """
    config, stored = experiment.config, experiment.features.stored
    for key, backbones, arrays in _readers(experiment):
        for name in backbones:
            shapes, backbone = stored[name].shapes, config.backbones[name]
            if missing := [array for array in arrays if array not in shapes]:
                remedy = f"choose what reads {' or '.join(shapes)}, or "
                if backbone.is_adopted:
                    remedy += f"import {missing[0]} too"
                elif missing[0] not in ("cls", "patches"):
                    remedy += f"name the layer in backbones.{name}.layers, which has {backbone.layers or 'none'}"
                else:
                    remedy += f"set backbones.{name}.{'patches' if backbone.output == 'hidden' else 'output: hidden'}"
                what = f"{key} reads '{missing[0]}', which the features of backbones.{name} do not have"
                yield UserError(what, where=backbone.source, remedy=remedy)
            elif any(shapes[array] != stored[backbones[0]].shapes[array] for array in arrays):
                what = f"{key}: the features of '{name}' have other shapes than those of '{backbones[0]}'"
                yield UserError(what, where=backbone.source, remedy="give views of one network and one image size")
    for name in experiment.models.trained_captioners:
        captioner = config.captioners[name]
        patches = stored[captioner.backbone].shapes.get(_at_layer(["patches"], captioner.layer)[0])
        try:
            if patches and captioner.attends:
                captioner.check_patches(patches[0])
        except UserError as error:
            what, where = f"captioners.{name}.{error.what}", config.backbones[captioner.backbone].source
            yield UserError(what, where=where, remedy=error.remedy)


def _readers(experiment: "Experiment") -> Iterator[tuple[str, list[str], Sequence[str]]]:
    """Yield the key of each model, its backbone and those of its views, and the arrays that it reads."""
    config, models = experiment.config, experiment.models
    for name in models.trained_captioners:
        captioner = config.captioners[name]
        yield f"captioners.{name}", [captioner.backbone], _at_layer(captioner.arrays, captioner.layer)
    for name in models.needed_retrievers:
        retriever = config.retrievers[name]
        key, views = f"retrievers.{name} (pool {retriever.image.pool})", retriever.augmented_views
        yield key, [retriever.backbone, *views], _at_layer(retriever.image.needed_arrays, retriever.layer)
    yield from ask("arrays", config)
    if config.metrics.clip_score and models.captioners:
        yield "metrics.clip_score", [config.metrics.clip_score.backbone], ["cls"]


def _at_layer(arrays: Sequence[str], layer: int | None) -> list[str]:
    names = dict(zip(("cls", "patches"), arrays_of_layer(layer), strict=True)) if layer else {}
    return [names.get(array, array) for array in arrays]


def not_done(experiment: "Experiment") -> Iterator[str]:
    """Yield a line for what the experiment names and a run does not do."""
    config, models, places = experiment.config, experiment.models, experiment.captioning.attentive_captioners
    if models.data_alone:
        yield "the file has no section of models: only the data set is made"
    yield from ask("notes", experiment)
    for name in models.captioners if models.attentive_decodings else ():
        if config.captioners[name].attends and name not in places:
            backbone = config.captioners[name].backbone
            yield f"captioners.{name}: no attention is drawn, because the patches of backbones.{backbone} have no grid"


def _without_encoder(experiment: "Experiment") -> Iterator[UserError]:
    """Rerankings embed new captions, which no encoder is known for where the features were imported."""
    for name in experiment.models.rerankings:
        retriever = experiment.config.rerankings[name].retriever
        encoder = experiment.config.retrievers[retriever].text.text_encoder if retriever else None
        if encoder in experiment.models.adopted_texts:
            store = Path(experiment.features.adopted_store(experiment.config.text_encoders[encoder]))
            if store.is_file() and store.stat().st_size and "imported" in read_sealed(store)["attributes"]:
                what = (
                    f"rerankings.{name}: its retriever reads imported text features, and no encoder is known for more"
                )
                yield UserError(what, where=store, remedy="name a text encoder that is a checkpoint")


def checkpoint_sources(experiment: "Experiment") -> dict[str, str]:
    """Return the checkpoints that the experiment starts from, hub ids and names of folders, and their revisions."""
    return {source: revision for _, source, revision, _ in _checkpoints(experiment)}


def _checkpoints(experiment: "Experiment") -> Iterator[tuple[str, str, str, Callable[[Path], object]]]:
    """Yield key, source, revision and the check of the folder of each checkpoint that the experiment starts from."""
    config, models = experiment.config, experiment.models
    for name in models.extracted:
        backbone = config.backbones[name]
        check = partial(check_image_encoder, kind=backbone.kind, output=backbone.output, layers=backbone.layers or ())
        if not models.is_trained(name):
            check = partial(check, image_size=backbone.image_size)
            yield f"backbones.{name}", backbone.source, backbone.revision, check
    users: dict[str, Any] = {f"captioners.{name}": config.captioners[name] for name in models.trained_captioners}
    users |= {f"rerankings.{name}.weighing": config.rerankings[name].weighing for name in models.rerankings}
    for key, user in users.items():
        if (model := getattr(user, "language_model", None)) is not None:
            yield f"{key}.language_model", model.source, model.revision, lambda _: None
    for name in dict.fromkeys([*models.extracted_texts, *(models.scoring_encoders if models.captioners else [])]):
        encoder = config.text_encoders[name]
        if encoder.output != "word_vectors":
            checked = partial(check_text_encoder, output=encoder.output, max_length=encoder.max_length)
            yield f"text_encoders.{name}", encoder.source, encoder.revision, checked
    yield from ask("checkpoints", config)


def too_many_pairs(experiment: "Experiment", captions: int) -> Iterator[UserError]:
    """Yield the settings that ask for more training pairs than there are captions of training images."""
    config = experiment.config
    asked = {
        f"retrievers.{name}.training.pairs": config.retrievers[name].training.pairs
        for name in experiment.models.needed_retrievers
    }
    asked |= dict(ask("pairs", config))
    for key, pairs in asked.items():
        if pairs is not None and pairs > captions:
            what = f"{key}: {pairs}, but the training images have {captions} captions"
            yield UserError(what, where=f"data.{config.data.dataset}", remedy="lower it, or set null for all")


def endless_warm_ups(experiment: "Experiment", images: int) -> Iterator[str]:
    """Yield a line for each phase, over so many training images, whose learning rate does not arrive."""
    config, models = experiment.config, experiment.models
    trained: dict[str, Any] = {f"captioners.{name}": config.captioners[name] for name in models.trained_captioners}
    trained |= {f"retrievers.{name}": config.retrievers[name] for name in models.needed_retrievers}
    for key, model in trained.items():
        for number, phase in enumerate(model.training.phases if images else ()):
            batch = images_in_batch(phase, images) if isinstance(phase, CaptionerPhaseConfig) else phase.batch_images
            steps = phase.epochs * -(-images // batch)
            if phase.batch_pairs is None and warmup_steps(phase, steps) >= steps:
                warmup = f"{key}.training.phases[{number}].warmup_steps: {phase.warmup_steps}"
                yield f"{warmup}, but the phase has {steps} steps: the learning rate never arrives; lower it"


def empty_splits(experiment: "Experiment", sizes: Counter[str]) -> Iterator[UserError]:
    """Yield an error for each split that a run needs and that has no image; ``sizes`` counts the images of each."""
    listed = ", ".join(f"{number} {split}" for split, number in sizes.items() if number)
    for split, purpose in experiment.models.split_uses.items():
        if not sizes[split]:
            yield UserError(
                f"no image is in the split '{split}', which {purpose} needs",
                where=f"data.{experiment.config.data.dataset}: {listed or 'no image'}",
                remedy=EMPTY_SPLIT,
            )
