"""Whether the parts of a configuration fit together."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from vitcapr.config.experiment import ExperimentConfig

V = TypeVar("V")


def contradictions(config: "ExperimentConfig") -> Iterator[str]:
    """A sentence for each contradiction between two parts."""
    run = config.run
    unknown = [
        *_undefined("run.captioners", run.captioners, config.captioners),
        *_undefined("run.decodings", run.decodings, config.decodings),
        *_undefined("run.rerankings", run.rerankings, config.rerankings),
        *_undefined("run.retrievers", run.retrievers, config.retrievers),
        *_undefined("run.alignments", run.alignments, config.alignments),
        *_undefined("run.finetuned_dual_encoders", run.finetuned_dual_encoders, config.finetuned_dual_encoders),
        *(
            problem
            for figure, names in run.loss_curves.items()
            for problem in _undefined(f"run.loss_curves.{figure}", names, config.finetuned_dual_encoders)
        ),
    ]
    yield from unknown
    if unknown:
        return  # Everything below looks these names up.
    yield from _of_captioners(config)
    yield from _of_rerankings(config)
    yield from _of_retrievers(config)
    yield from _of_alignments(config)
    yield from _of_finetuned(config)
    scored = [*run.retrievers, *run.finetuned_dual_encoders]
    yield from _undefined("run.compared", run.compared, scored)
    yield from _undefined("run.query_banks", run.query_banks, scored)
    yield from _of_ablations(config, scored)
    yield from _of_metrics(config)
    yield from _shared_names(config)
    if run.pools and config.data.dataset != "pairs":
        yield f"run.pools: the data set {config.data.dataset} has no held-out queries; use pairs"
    if config.features.chunk % config.features.batch:
        yield f"features.batch {config.features.batch} does not divide features.chunk {config.features.chunk}"


def _of_captioners(config: "ExperimentConfig") -> Iterator[str]:
    run = config.run
    if run.captioners and not run.decodings:
        yield "run.decodings is empty, but run.captioners is not"
    if not run.captioners and (run.decodings or run.rerankings):
        idle = "decodings" if run.decodings else "rerankings"
        yield f"run.{idle} needs a captioner; empty it, or list one in run.captioners"
    checked: set[str] = set()
    for wanted in run.captioners:
        try:
            line = config.start_chain(wanted)
        except ValueError as error:
            yield str(error)
            continue
        for name in line:
            if name not in checked:
                captioner = config.captioners[name]
                yield from _of_backbone(config, f"captioners.{name}.backbone", captioner.backbone)
                yield from _of_layers(config, f"captioners.{name}.layer", _given(captioner.layer), [captioner.backbone])
                yield from _undefined(
                    f"captioners.{name}.word_vectors", _given(captioner.word_vectors), config.word_vectors
                )
                checked.add(name)


def _of_rerankings(config: "ExperimentConfig") -> Iterator[str]:
    for name in config.run.rerankings:
        reranking = config.rerankings[name]
        yield from _undefined(f"rerankings.{name}.retriever", _given(reranking.retriever), config.retrievers)
        if name in config.decodings:
            yield f"'{name}' is both a decoding and a reranking; rename one of them"
        if reranking.by == "oracle" and "oracle" not in name:
            yield f"the reranking '{name}' uses an oracle; its name must contain 'oracle'"
        if unknown := list(_undefined(f"rerankings.{name}.decoding", [reranking.decoding], config.decodings)):
            yield from unknown
        elif config.decodings[reranking.decoding].n_best < 2:
            yield (
                f"rerankings.{name} reorders the candidates of '{reranking.decoding}', which stores only one; "
                f"set decodings.{reranking.decoding}.n_best"
            )


def _of_retrievers(config: "ExperimentConfig") -> Iterator[str]:
    reranking = _given(*(config.rerankings[name].retriever for name in config.run.rerankings))
    for name in dict.fromkeys([*config.run.retrievers, *reranking]):
        if name not in config.retrievers:
            continue
        retriever = config.retrievers[name]
        yield from _undefined(f"retrievers.{name}.backbone", [retriever.backbone], config.backbones)
        yield from _of_views(
            config, f"retrievers.{name}.augmented_views", retriever.augmented_views, retriever.backbone
        )
        views = [retriever.backbone, *retriever.augmented_views]
        yield from _of_layers(config, f"retrievers.{name}.layer", _given(retriever.layer), views)
        yield from _undefined(
            f"retrievers.{name}.text.encoder", _given(retriever.text.text_encoder), config.text_encoders
        )
        yield from _undefined(
            f"retrievers.{name}.text.word_vectors", _given(retriever.text.initial_vectors), config.word_vectors
        )


def _of_alignments(config: "ExperimentConfig") -> Iterator[str]:
    for name in dict.fromkeys(config.run.alignments):
        alignment = config.alignments[name]
        yield from _of_backbone(config, f"alignments.{name}.image", alignment.image)
        views = [alignment.image, *alignment.views]
        yield from _of_layers(config, f"alignments.{name}.inputs", alignment.layers, views)
        yield from _of_views(config, f"alignments.{name}.views", alignment.views, alignment.image)
        yield from _undefined(f"alignments.{name}.text", [alignment.text], config.text_encoders)


def _of_layers(config: "ExperimentConfig", key: str, layers: Iterable[int], backbones: Iterable[str]) -> Iterator[str]:
    for name in backbones:
        backbone = config.backbones.get(name)
        if backbone is None or backbone.is_adopted:  # Reported elsewhere; a store is checked when it is opened.
            continue
        stored = backbone.layers or []
        if missing := sorted(set(layers) - set(stored)):
            yield f"{key} reads layer {missing[0]}; name it in backbones.{name}.layers, which has {stored or 'none'}"


def _of_views(config: "ExperimentConfig", key: str, views: Iterable[str], backbone: str) -> Iterator[str]:
    for view in views:
        if unknown := list(_undefined(key, [view], config.backbones)):
            yield from unknown
        elif backbone in config.backbones and not config.backbones[view].same_network(config.backbones[backbone]):
            yield f"{key}: '{view}' does not use the network and size of '{backbone}'"


def _of_finetuned(config: "ExperimentConfig") -> Iterator[str]:
    drawn = (name for names in config.run.loss_curves.values() for name in names)
    for name in dict.fromkeys([*config.run.finetuned_dual_encoders, *drawn]):
        finetuned = config.finetuned_dual_encoders[name]
        if name in config.retrievers:
            yield f"'{name}' is both a retriever and a fine-tuned dual encoder; rename one of them"
        key = f"finetuned_dual_encoders.{name}"
        yield from _of_backbone(config, f"{key}.image.backbone", finetuned.image.backbone)
        for tower, text in finetuned.text.items():
            yield from _undefined(f"{key}.text.{tower}.tokenizer", _given(text.tokenizer), config.tokenizers)


def _of_ablations(config: "ExperimentConfig", scored: Collection[str]) -> Iterator[str]:
    def languages(model: str) -> list[str]:
        finetuned = config.finetuned_dual_encoders.get(model)
        return [config.text.language] if finetuned is None else finetuned.languages

    for whole, models in config.run.ablations.items():
        yield from _undefined("run.ablations", [whole], scored)
        yield from _undefined(f"run.ablations.{whole}", models, scored)
        if any(languages(model) != languages(whole) for model in models):
            yield f"run.ablations.{whole}: all models must read the same languages in the same order"


def _of_metrics(config: "ExperimentConfig") -> Iterator[str]:
    if ("chair" in config.metrics.metrics) != bool(config.metrics.instances):
        yield "metrics.instances: name COCO's instances_*.json for the metric chair, and only for it"
    clip, sentences, bert = config.metrics.clip_score, config.metrics.sentence_similarity, config.metrics.bert_score
    for key, wanted in (("clip_score", clip), ("sentence_similarity", sentences), ("bert_score", bert)):
        if wanted is not None:
            yield from _undefined(f"metrics.{key}.text_encoder", [wanted.text_encoder], config.text_encoders)
    if clip is not None:
        yield from _of_backbone(config, "metrics.clip_score.backbone", clip.backbone)
    encoder = None if sentences is None else config.text_encoders.get(sentences.text_encoder)
    if encoder is not None and encoder.output == "word_vectors":
        yield "metrics.sentence_similarity.text_encoder: word vectors are no encoder of sentences"
    encoder = None if bert is None else config.text_encoders.get(bert.text_encoder)
    if encoder is not None and encoder.output != "hidden":
        yield "metrics.bert_score.text_encoder: BERTScore compares tokens; name a text encoder with output: hidden"


def _of_backbone(config: "ExperimentConfig", key: str, backbone: str) -> Iterator[str]:
    unknown = list(_undefined(key, [backbone], config.backbones))
    yield from unknown
    if not unknown and config.backbones[backbone].mirror:
        yield f"{key}: '{backbone}' mirrors its pictures; only the augmented views of a retriever may do so"


def _shared_names(config: "ExperimentConfig") -> Iterator[str]:
    """Embeddings, query-bank scores and logs of a model have derived names. All of them must differ."""
    found = [*config.retrievers, *config.finetuned_dual_encoders]
    for finetuned, model in config.finetuned_dual_encoders.items():
        if len(model.languages) > 1:
            found += [f"{finetuned}-{language}" for language in model.languages]
    found += [f"{name}-query_bank" for name in list(found)]
    yield from _repeated("retrievers and finetuned_dual_encoders", found)
    ways = {*config.run.decodings, *config.run.rerankings}
    yield from _repeated("run", [f"{captioner}.{way}" for captioner in set(config.run.captioners) for way in ways])


def _given(*values: V | None) -> list[V]:
    return [value for value in values if value is not None]


def _undefined(key: str, names: Iterable[str], defined: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in defined:
            yield f"{key} names '{name}', which is not defined; defined: {sorted(defined)}"


def _repeated(key: str, names: Iterable[str]) -> Iterator[str]:
    """Two things with the same name would share their files."""
    for name, number in Counter(names).items():
        if number > 1:
            yield f"{key}: two things have the name '{name}'; rename one of them"
