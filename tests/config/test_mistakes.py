"""Every mistake in an experiment's file is refused, in one line that names the key and says what to do.

Of the settings without effect, each is refused under the choice that leaves it without effect.
"""

import pytest
import yaml

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse
from vitcapr.errors import UserError

BASE = """
experiment: x
backbones: {vit: {source: vit, layers: [6, 9]}, plain: {source: vit}, mirrored: {source: vit, mirror: true},
  wide: {source: vit, image_size: 96, mirror: true}, clip: {source: clip}, pulled: {source: "store:0123"}}
text_encoders: {bert: {source: bert}, glove: {source: glove.txt, output: word_vectors}}
"""
CAPTIONER, RETRIEVER = "captioners: {a: {backbone: vit, %s}}", "retrievers: {r: {backbone: vit, %s}}"
PHASE = CAPTIONER % "training: {phases: {epochs: 1, %s}}"
PAIR_PHASE = RETRIEVER % "training: {phases: {epochs: 1, %s}}"
RAW = "image: {head: none}, text: {kind: features, encoder: bert, head: none}, training: {phases: []}"
RERANKING = "{captioners: {a: {backbone: vit}}, retrievers: {r: {backbone: vit}}, rerankings: {%s}}"
TOWERS = "finetuned_dual_encoders: {f: {image: {backbone: plain}, text: {t: {%s}}}}"
ALIGNMENT = "alignments: {few: {image: vit, text: bert, %s}}"

UNKNOWN = {
    "sed: 1": ("sed", "seed"),
    "zzz: 1": ("zzz", None),
    CAPTIONER % "droput: 0.1": ("captioners.a.droput", "dropout"),
    PHASE % "max_len: 3": ("captioners.a.training.phases[0].max_len", "max_length"),
    PHASE % "lr: 0.1": ("captioners.a.training.phases[0].lr", "learning_rate"),
    CAPTIONER % "training: {epochs: 3}": ("captioners.a.training.epochs", None),
    "data: {flickr8k: {imgs: here}}": ("data.flickr8k.imgs", "images"),
    "backbone: {v: {source: s}}": ("backbone", "backbones"),
    "captionrs: {a: {backbone: vit}}": ("captionrs", "captioners"),
    "decodings: {a: {beam_size: 3, zzz: 1}}": ("decodings.a.zzz", None),
    # A key of this name in another section means something else.
    "decodings: {a: {samples: 3}}": ("decodings.a.samples", "sampling"),
    PHASE % "batch: 3": ("captioners.a.training.phases[0].batch", "batch_images"),
}

WRONG = {
    "backbones: {mine: folder}": "'backbones.mine': it must be a section, with keys of its own (x.yaml); it was",
    "captioners: {a: {}}": "configuration key 'captioners.a.backbone': it must be given (x.yaml); add it",
    PHASE.replace("1", "ten") % "": 'a.training.phases[0].epochs\': it must be a whole number (x.yaml); it was "ten"',
    # YAML reads yes and on as true, no and off as false.
    PHASE.replace("1", "yes") % "": "a.training.phases[0]': epochs must be a number, not true or false",
    CAPTIONER % "dropout: no": "'captioners.a': dropout must be a number, not true or false",
    CAPTIONER % f"embedding_dim: {2**64}": "'captioners.a': embedding_dim must be less than 2^63",
    "trained_backbone: {heads: 3}": "hidden_size 128 must be a multiple of heads, 3",
    "seed: on": "seed must be a number, not true or false",
    "backbones: {b: {source: vit, layers: [yes]}}": "'backbones.b': layers must be a number, not true or false",
    RETRIEVER % "training: {sweep: {learning_rate: [yes]}}": "learning_rate must be a number",
    "{captioners: {a: {backbone: vit}}, grid: [{captioners: [a], vary: {hidden_dim: [yes]}}]}": "must be a number",
    "decodings: {beam: {beam_size: 0}}": "beam_size': it must be greater than or equal to 1 (x.yaml); it was 0",
    "experiment: ../up": "it must match pattern",
    "experiment: stores": "reserved name",
    "run: {captioners: [none]}": "run.captioners names 'none', which is not defined",
    "captioners: {a: {backbone: x}}": "'x', which is not defined; defined: clip, mirrored, plain, pulled, vit, wide",
    CAPTIONER % "decodings: {greedy: {}}": "'captioners.a.decodings' (x.yaml); 'decodings' is a key of the top level",
    "{captioners: {a: {backbone: mirrored}}}": "'mirrored' mirrors its pictures",
    PHASE % "objective: self_critical": "'captioners.a.training': select_by loss would never select an epoch of",
    "decodings: {beam: {beam_size: 2, n_best: 3}}": "n_best 3 is larger than beam_size 2",
    "decodings: {beam: {min_length: 9, max_length: 8}}": "min_length 9 is larger than max_length 8",
    "decodings: {beam: {min_length: 0}}": "greater than or equal to 1",
    # Data sets.
    "data: {dataset: flickr8k}": "data.flickr8k.images and data.flickr8k.text must be given",
    "data: {dataset: coco, coco: {images: a}}": "data.coco.annotations or karpathy must be given",
    "data: {dataset: pairs}": "data.pairs.table must be given",
    "data: {dataset: pairs, pairs: {source: flickr8k}}": "data.pairs.chinese and data.flickr8k.images and",
    # Languages.
    "{text: {language: de}, captioners: {a: {backbone: vit}}}": "reads 'de', but the captions of data.scenes are in",
    "{data: {dataset: table, table: {images: a, language: zh}}, retrievers: {r: {backbone: vit}}}": (
        "are in zh; set text.language, or data.table.language: en where no column has the language"
    ),
    "data: {dataset: table, table: {images: a, splits: hash, columns: {split: part}}}": "columns.split has no effect",
    "{data: {dataset: table, table: {images: a, language: zh}}, captioners: {a: {backbone: vit}}}": "are in zh",
    TOWERS % "source: b, languages: [fr]": "finetuned_dual_encoders.f reads 'fr', but",
    # Layers and views.
    CAPTIONER % "layer: 0": "greater than or equal to 1",
    "captioners: {a: {backbone: vit}, b: {backbone: vit, layer: 6, start_from: a}}": "uses another layer",
    RETRIEVER % "augmented_views: [other]": "augmented_views names 'other'",
    RETRIEVER % "augmented_views: [clip]": "'clip' does not use the network and size of 'vit'",
    RETRIEVER % "augmented_views: [wide]": "'wide' does not use the network and size of 'vit'",
    RETRIEVER % "augmented_views: [pulled]": "'pulled' does not use the network and size of 'vit'",
    RETRIEVER % "augmented_views: [mirrored, vit]": "'vit' occurs twice in backbone and augmented_views",
    RETRIEVER % "augmented_views: [mirrored, mirrored]": "'mirrored' occurs twice",
    "backbones: {b: {source: 'store:1', mirror: true}}": "store:1 holds features",
    "backbones: {b: {source: 'store:1', layers: [6]}}": "layers needs pictures",
    "text_encoders: {t: {source: 'store:1', pool: cls, max_length: 8}}": "max_length, pool without effect",
    "backbones: {b: {source: vit, layers: [6], output: aligned}}": "layers: [6] needs output: hidden",
    "backbones: {b: {source: vit, layers: [9, 6]}}": "layers has to increase: [6, 9]",
    "backbones: {b: {source: vit, layers: []}}": "at least 1 item",
    "backbones: {b: {source: vit, patches: 7, output: aligned}}": "patches: 7 needs output: hidden",
    "backbones: {b: {source: 'store:1', patches: none}}": "patches needs pictures",
    # Retrievers.
    RETRIEVER % "text: {kind: features}": "text.encoder': it must be given",
    RETRIEVER % "text: {kind: bag, head: none}": "bag learns word embeddings",
    RETRIEVER % RAW.replace(", training: {phases: []}", ""): "nothing is learned; set training",
    RETRIEVER % "image: {head: none}, training: {phases: []}": "a tower has weights to learn",
    RETRIEVER % f"{RAW}, members: 2": "nothing is learned; set members to 1",
    PAIR_PHASE % "mixup: 0.2": "mixup needs text kind features",
    PAIR_PHASE % "structure: 10.0": "structure needs text kind features",
    PAIR_PHASE % "objective: hinge_rank, hard_negatives: hardest": "hinge_rank uses dot products",
    RETRIEVER % "training: {sweep: {learning_rate: [0.1, 0.1]}}": "learning rates must be different",
    RETRIEVER % "temperature: 0": "greater than or equal to 0.01",
    # Rerankings.
    RERANKING % "x: {decoding: beam}": "needs the key retriever",
    RERANKING % "x: {decoding: greedy, retriever: r}": "which stores only one; set decodings.greedy.n_best",
    RERANKING % "x: {decoding: beam, by: oracle}": "its name must contain 'oracle'",
    RERANKING % "beam: {decoding: beam, retriever: r}": "'beam' is both a decoding and a reranking",
    # Metrics.
    "metrics: {caption: [chair]}": "metrics.instances: name COCO's instances_*.json for the metric chair",
    "metrics: {caption: [bleurt]}": "metrics.caption[0]': it must be 'bleu'",
    "metrics: {clip_score: {backbone: pulled, text_encoder: bert}}": "clip_score.text_encoder: its output is 'hidden'",
    "{text: {language: zh}, metrics: {caption: [meteor]}, captioners: {a: {backbone: vit}}}": "no metric for 'zh'",
    # Fine-tuned dual encoders and alignments.
    TOWERS % "languages: [en]": "needs either source (a checkpoint) or tokenizer (from scratch), not both",
    TOWERS % "source: b}, u: {source: b": "two text towers read the same language",
    ALIGNMENT % "views: [clip], inputs: [cls+views]": "'clip' does not use the network and size of 'vit'",
    ALIGNMENT % "inputs: [cls+views]": "need an entry of views",
    ALIGNMENT % "families: [pca]": "no family 'pca'",
    ALIGNMENT % "sizes: [5]": "greater than or equal to 10",
    "alignments: {few: {image: resnet, text: bert}}": "alignments.few.image names 'resnet'",
    # Names.
    "retrievers: {untrained: {backbone: vit}}": "reserved name",
    "captioners: {retrieval: {backbone: vit}}": "reserved name",
    "retrievers: {m: {backbone: vit}, m-query_bank: {backbone: vit}}": "the name 'm-query_bank'",
    "{captioners: {a: {backbone: vit}, a.b: {backbone: vit}}, decodings: {b.c: {}, c: {}}}": "have the name 'a.b.c'",
    "run: {pools: true}": "the data set scenes has no held-out queries; use pairs",
}

WITHOUT_EFFECT = {
    CAPTIONER % "architecture: baseline, scoring: relu": "'captioners.a.scoring' needs architecture patch_attention",
    CAPTIONER % "architecture: baseline, heads: 8": "'captioners.a.heads' needs architecture transformer",
    CAPTIONER % "layers: 7": "'captioners.a.layers' needs architecture transformer or placed_transformer (x.yaml)",
    PHASE % "objective: {kind: cross_entropy, samples: 3}": "'samples' is not a key of this loss; it has kind, label",
    PHASE % "objective: info_nce": "must be a subclass of vitcapr.config.objective.CaptionerLoss; cross_entropy, self_",
    PHASE % "schedule: constant, final_fraction: 0": "final_fraction needs schedule cosine or linear, not constant",
    PAIR_PHASE % "step_epochs: 2": "step_epochs needs schedule step, not cosine",
    PHASE % "batch_pairs: 8, batch_images: 4": "batch_images needs batch_pairs null",
    PAIR_PHASE % "objective: {kind: sigmoid, margin: 0.2}": "'margin' is not a key of this loss; it has kind",
    PAIR_PHASE % "batch_pairs: 8, captions_per_image: 4": "captions_per_image needs batch_pairs null",
    RETRIEVER % "image: {standardise: true}": "standardise needs pool cls",
    RETRIEVER % "image: {head: {kind: mlp, depth: 2}}": "'depth' is not a key of this head; it has kind, hidden_dim",
    RETRIEVER % "image: {head: {kind: mlp, hiden_dim: 6}}": "did you mean 'hidden_dim'",
    RETRIEVER % "image: {queries: 2}": "queries needs pool attention or attention_mean, not cls_mean",
    RETRIEVER % "text: {kind: lstm, encoder: bert}": "encoder' needs kind features or features_and_words",
    RETRIEVER % "text: {kind: features, encoder: bert, word_vectors: g}": "word_vectors' needs kind bag",
    RETRIEVER % "text: {kind: bag, pool: max}": "pool' needs kind lstm or bilstm",
    "data: {dataset: coco, coco: {images: i, annotations: [a], karpathy: k}}": "annotations needs karpathy null, not k",
    "decodings: {a: {sampling: {}, beam_size: 3}}": "beam_size needs sampling null",
    RERANKING % "oracle: {decoding: beam, by: oracle, retriever: r}": "retriever needs by retriever, not oracle",
    "backbones: {b: {source: clip, pool: max}}": "pool needs output qformer, not hidden",
    "text_encoders: {b: {source: clip, output: aligned, pool: cls}}": "pool needs output hidden, not aligned",
    "text_encoders: {b: {source: g.txt, output: word_vectors, max_length: 9}}": "max_length needs output hidden or",
    "text_encoders: {b: {source: g.txt, output: word_vectors, dtype: float32}}": "dtype needs output hidden or aligned",
    TOWERS % "source: b, layers: 2": "layers needs source null",
    TOWERS % "tokenizer: t, top_layers: 2": "top_layers needs source",
}


def refused(text: str) -> str:
    values = yaml.safe_load(BASE)
    for section, given in yaml.safe_load(text).items():
        values[section] = {**values[section], **given} if section in values and section != "experiment" else given
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, expand_grid(values, "x.yaml"), "x.yaml")
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_unknown_key_and_the_key_that_was_meant(text: str) -> None:
    key, meant = UNKNOWN[text]
    remedy = f"did you mean '{meant}'?" if meant else "`vitcapr config parameters` lists the keys"
    assert refused(text) == f"unknown configuration key '{key}' (x.yaml); {remedy}"


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_value(text: str) -> None:
    assert WRONG[text] in refused(text)


@pytest.mark.parametrize("text", WITHOUT_EFFECT)
def test_a_setting_without_effect(text: str) -> None:
    assert WITHOUT_EFFECT[text] in refused(text)
