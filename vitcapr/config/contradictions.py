"""Contradictions between sections of a configuration."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from vitcapr.config.base import Section, named_entries
from vitcapr.config.dual_encoder import DualEncoderConfig, ranked_sections
from vitcapr.config.features import TRAINED
from vitcapr.loader import ask, sections_to_run

if TYPE_CHECKING:
    from vitcapr.config.experiment import ExperimentConfig

V = TypeVar("V")


def contradictions(config: "ExperimentConfig") -> Iterator[str]:
    """Yield a sentence for each contradiction between two parts."""
    run = config.run
    if unknown := list(_unknown_entries(config, "run", run)):
        yield from unknown
        return  # Everything below looks these names up.
    yield from _unknown_entries(config, "metrics", config.metrics)
    yield from _check_captioners(config)
    yield from _check_rerankings(config)
    yield from _check_retrievers(config)
    scored = [name for section in ranked_sections() for name in getattr(run, section)]
    yield from _undefined("run.compared", run.compared, scored)
    yield from _undefined("run.query_banks", run.query_banks, scored)
    yield from _check_ablations(config, scored)
    yield from _check_metrics(config)
    yield from _shared_names(config)
    for section in sections_to_run():
        for name in run.named(section):
            yield from _unknown_entries(config, f"{section}.{name}", getattr(config, section)[name])
    yield from ask("contradictions", config)
    if run.pools and config.data.dataset != "pairs":
        yield f"run.pools: the data set {config.data.dataset} has no held-out queries; use pairs"
    yield from missing_languages(config, getattr(config.data, config.data.dataset).known_languages)


def _unknown_entries(config: "ExperimentConfig", key: str, section: Section) -> Iterator[str]:
    """Yield the names in a section, and in the sections below it, that stand for no entry or for one that mirrors."""
    for place, entry, names in named_entries(section, key):
        defined = getattr(config, entry.section)
        usable: Collection[str] = defined
        if entry.section == "backbones" and not getattr(config.data, config.data.dataset).has_objects:
            usable = [name for name in defined if defined[name].source != TRAINED] or defined
        yield from _undefined(place, [name for name in names if name not in defined], usable)
        if entry.section == "backbones" and not entry.mirrored:
            yield from (
                f"{place}: '{backbone}' mirrors its pictures; only the augmented views of a retriever may do so"
                for backbone in names
                if backbone in defined and defined[backbone].mirror
            )


def missing_languages(config: "ExperimentConfig", languages: Collection[str] | None) -> Iterator[str]:
    """Yield a sentence for each language that a model reads and that no caption is in.

    ``languages`` is None if they are not known.
    """
    run, dataset = config.run, config.data.dataset
    keys = {"text.language": [config.text.language]} if run.captioners or run.retrievers else {}
    own = [(section, name) for section in sections_to_run(DualEncoderConfig) for name in getattr(run, section)]
    keys |= {f"{section}.{name}": list(config.languages(name)) for section, name in own}
    for key, read in keys.items():
        for language in read:
            if languages is not None and language not in languages:
                there = f"the captions of data.{dataset} are in {' and '.join(languages)}"
                remedy = f"; set {key}, or data.table.language: {language} where no column has the language"
                yield f"{key} reads '{language}', but {there}{remedy if dataset == 'table' else ''}"


def _check_captioners(config: "ExperimentConfig") -> Iterator[str]:
    run = config.run
    if run.captioners and not run.decodings:
        yield "run.decodings is empty, but run.captioners is not"
    if not run.captioners and (run.decodings or run.rerankings):
        idle = "decodings" if run.decodings else "rerankings"
        yield f"run.{idle} needs a captioner; empty it, or list one in run.captioners"
    chains: list[str] = []
    for last in run.captioners:
        try:
            chains += config.start_chain(last)
        except ValueError as error:
            yield str(error)
    for name in dict.fromkeys(chains):
        captioner = config.captioners[name]
        yield from _unknown_entries(config, f"captioners.{name}", captioner)


def _check_rerankings(config: "ExperimentConfig") -> Iterator[str]:
    for name in config.run.rerankings:
        reranking = config.rerankings[name]
        yield from _unknown_entries(config, f"rerankings.{name}", reranking)
        if name in config.decodings:
            yield f"'{name}' is both a decoding and a reranking; rename one of them"
        if reranking.by == "oracle" and "oracle" not in name:
            yield f"the reranking '{name}' uses an oracle; its name must contain 'oracle'"
        if reranking.decoding in config.decodings and config.decodings[reranking.decoding].n_best < 2:
            yield (
                f"rerankings.{name} reorders the candidates of '{reranking.decoding}', which stores only one; "
                f"set decodings.{reranking.decoding}.n_best"
            )


def _check_retrievers(config: "ExperimentConfig") -> Iterator[str]:
    reranking = _given(*(config.rerankings[name].retriever for name in config.run.rerankings))
    for name in dict.fromkeys([*config.run.retrievers, *reranking]):
        if name in config.retrievers:
            key, retriever = f"retrievers.{name}", config.retrievers[name]
            yield from _unknown_entries(config, key, retriever)
            views = [retriever.backbone, *retriever.augmented_views]
            yield from check_views(config, f"{key}.augmented_views", views)


def check_views(config: "ExperimentConfig", key: str, views: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each contradiction between views: the backbone, then its augmented views."""
    backbone, *others = views
    for view in others:
        if {view, backbone} <= config.backbones.keys() and not config.backbones[view].same_network(
            config.backbones[backbone]
        ):
            yield f"{key}: '{view}' does not use the network and size of '{backbone}'"


def _check_ablations(config: "ExperimentConfig", scored: Collection[str]) -> Iterator[str]:
    for whole, models in config.run.ablations.items():
        yield from _undefined("run.ablations", [whole], scored)
        yield from _undefined(f"run.ablations.{whole}", models, scored)
        if strangers := [model for model in models if {*config.languages(model)}.isdisjoint(config.languages(whole))]:
            yield f"run.ablations.{whole}: '{strangers[0]}' reads none of its languages"


def _check_metrics(config: "ExperimentConfig") -> Iterator[str]:
    language = config.text.language
    if config.run.captioners and config.metrics.caption and not config.metrics.caption_in(language):
        yield f"metrics.caption has no metric for '{language}': {', '.join(config.metrics.caption)} read English alone"
    if ("chair" in config.metrics.caption) != bool(config.metrics.instances):
        yield "metrics.instances: name COCO's instances_*.json for the metric chair, and only for it"
    clip, key = config.metrics.clip_score, "metrics.clip_score.text_encoder"
    encoder = None if clip is None else config.text_encoders.get(clip.text_encoder)
    if encoder is not None and encoder.is_adopted:
        yield f"{key}: generated captions need an encoder, and {encoder.source} holds features"
    elif encoder is not None and encoder.output != "aligned":
        yield f"{key}: its output is '{encoder.output}'; name one with output: aligned"
    image = None if clip is None else config.backbones.get(clip.backbone)
    if (
        image is not None and not image.is_adopted and image.output != "aligned"
    ):  # A store is checked when it is opened.
        yield f"metrics.clip_score.backbone: its output is '{image.output}'; name one with output: aligned"


def _shared_names(config: "ExperimentConfig") -> Iterator[str]:
    """Embeddings, query-bank scores and logs of a model have derived names. All of them must differ."""
    names = [name for section in ranked_sections() for name in getattr(config, section)]
    languages = {name: config.languages(name) for name in names}
    names += [f"{name}-{each}" for name, read in languages.items() for each in read if len(read) > 1]
    names += [f"{name}-query_bank" for name in list(names)]
    yield from _repeated(" and ".join(ranked_sections()), names)
    ways = {*config.run.decodings, *config.run.rerankings}
    yield from _repeated("run", [f"{captioner}.{way}" for captioner in set(config.run.captioners) for way in ways])


def _given(*values: V | None) -> list[V]:
    return [value for value in values if value is not None]


def _undefined(key: str, names: Iterable[str], defined: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in defined:
            yield f"{key} names '{name}', which is not defined; defined: {', '.join(sorted(defined)) or 'none'}"


def _repeated(key: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each repeated name: two things with one name would share their files."""
    for name, number in Counter(names).items():
        if number > 1:
            yield f"{key}: two things have the name '{name}'; rename one of them"
