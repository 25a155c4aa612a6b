"""What would end a run of an experiment, found before it starts."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from vitcapr.config.names import find_backbone
from vitcapr.encoders.kinds import check_image_encoder, check_image_tower, check_text_encoder
from vitcapr.errors import UserError
from vitcapr.experiment.inputs import Inputs
from vitcapr.experiment.selection import TRAIN, VALIDATION
from vitcapr.formats.store_manifest import read_sealed


def problems(experiment: Inputs) -> Iterator[UserError]:
    """What is wrong with the files and checkpoints that an experiment names."""
    config, run = experiment.config, experiment.config.run
    if not (run.captioners or run.retrievers or run.finetuned_dual_encoders or run.loss_curves or run.alignments):
        yield UserError(
            "the experiment names nothing to run",
            where=config.experiment,
            remedy="name something under captioners, retrievers, alignments or finetuned_dual_encoders",
        )
    for name in experiment.backbones:
        if experiment.is_trained(name) and not experiment.has_objects:
            yield UserError(
                f"backbones.{name} is to be trained here, which needs images whose objects are known",
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
    for key, source, check in _checkpoints(experiment):
        # A checkpoint of the hub is not known before it is fetched.
        if (folder := find_backbone(source)).is_dir():
            try:
                check(folder)
            except UserError as error:
                yield UserError(f"{key}: {error.what}", where=error.where, remedy=error.remedy)


def _without_encoder(experiment: Inputs) -> Iterator[UserError]:
    """Rerankings embed new captions, which no encoder is known for where the features were imported."""
    for name in experiment.rerankings:
        retriever = experiment.config.rerankings[name].retriever
        encoder = experiment.config.retrievers[retriever].text.text_encoder if retriever else None
        if encoder in experiment.adopted_texts:
            store = Path(experiment.adopted_store(SimpleNamespace(encoder=encoder)))
            if store.is_file() and store.stat().st_size and "imported" in read_sealed(store)["attributes"]:
                what = (
                    f"rerankings.{name}: its retriever reads imported text features, and no encoder is known for more"
                )
                yield UserError(what, where=store, remedy="name a text encoder that is a checkpoint")


def _checkpoints(experiment: Inputs) -> Iterator[tuple[str, str, Callable[[Path], object]]]:
    """Key and source of each checkpoint that the experiment starts from, and the check of its folder."""
    config = experiment.config
    for name in experiment.extracted:
        backbone = config.backbones[name]
        check = partial(check_image_encoder, kind=backbone.kind, output=backbone.output, layers=backbone.layers or ())
        if not experiment.is_trained(name):
            yield f"backbones.{name}", backbone.source, partial(check, image_size=backbone.image_size)
    for name in experiment.pixel_backbones:
        backbone = config.backbones[name]
        if not experiment.is_trained(name):
            yield f"backbones.{name}", backbone.source, partial(check_image_tower, image_size=backbone.image_size)
    for name in dict.fromkeys([*experiment.extracted_texts, *experiment.scoring_encoders]):
        encoder = config.text_encoders[name]
        if encoder.output != "word_vectors":
            checked = partial(check_text_encoder, output=encoder.output, max_length=encoder.max_length)
            yield f"text_encoders.{name}", encoder.source, checked
    for name in experiment.needed_dual_encoders:
        for part, tower in config.finetuned_dual_encoders[name].text.items():
            if tower.source is not None:
                checked = partial(check_text_encoder, output="hidden", max_length=tower.max_length)
                yield f"finetuned_dual_encoders.{name}.text.{part}", tower.source, checked


def empty_splits(experiment: Inputs, sizes: Counter[str]) -> Iterator[UserError]:
    """The splits without an image that a run needs.

    Args:
        sizes: the number of images of each split.
    """
    config = experiment.config
    trained = [*experiment.trained_captioners, *experiment.needed_retrievers, *experiment.needed_dual_encoders]
    needed = {TRAIN: "training", VALIDATION: "training"} if trained else {}
    needed |= dict.fromkeys(experiment.splits, "run.splits")
    needed |= {split: "tuning" for split in experiment.needed_splits if split not in needed}
    listed = ", ".join(f"{number} {split}" for split, number in sizes.items() if number)
    for split, purpose in needed.items():
        if not sizes[split]:
            yield UserError(
                f"no image is in the split '{split}', which {purpose} needs",
                where=f"data.{config.data.dataset}: {listed or 'no image'}",
                remedy="use more images or other shares, or set run.splits to splits that have images",
            )
