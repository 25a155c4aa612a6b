# What every rule shares: which values the wildcards may take, and the targets to name on the command line.


wildcard_constraints:
    experiment=experiment.chosen.name,
    backbone=one_of(experiment.chosen.backbones),
    vectors=one_of(experiment.chosen.word_vectors),
    captioner=one_of(experiment.chosen.captioners),
    decoding=one_of(experiment.chosen.decodings),
    split=one_of(experiment.chosen.splits),
    task=r"\d+",


localrules:
    all,
    features,
    captioners,
    captions,
    metrics,
    figures,


rule features:
    input:
        experiment.features.sealed,


rule captioners:
    input:
        expand(
            "results/{experiment}/captioners/{captioner}/best.safetensors",
            experiment=experiment.chosen.name,
            captioner=experiment.chosen.captioners,
        ),


rule captions:
    input:
        experiment.captioning.files("captions", "captions.json"),


rule metrics:
    input:
        experiment.metrics.files,


rule figures:
    input:
        experiment.figures.files,
