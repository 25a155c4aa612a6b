# What every rule shares: which values the wildcards may take, and the targets to name on the command line.


wildcard_constraints:
    experiment=experiment.name,
    backbone=experiment.one_of(experiment.backbones),
    vectors=experiment.one_of(experiment.word_vectors),
    captioner=experiment.one_of(experiment.captioners),
    decoding=experiment.one_of(experiment.decodings),
    split=experiment.one_of(experiment.splits),
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
        experiment.features,


rule captioners:
    input:
        expand(
            "results/{experiment}/captioners/{captioner}/best.safetensors",
            experiment=experiment.name,
            captioner=experiment.captioners,
        ),


rule captions:
    input:
        experiment.targets("captions", "captions.json"),


rule metrics:
    input:
        experiment.metrics,


rule figures:
    input:
        experiment.figures,
