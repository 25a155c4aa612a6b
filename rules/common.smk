# For all rules: the allowed values of the wildcards, and the targets of the command line.
# Rules with a priority run first if there are few cores, because a long chain of jobs waits for them. No job waits for a
# figure. Slow figures run before fast ones, so that no core is idle at the end.


wildcard_constraints:
    experiment=experiment.selection.name,
    backbone=one_of(experiment.selection.backbones),
    vectors=one_of(experiment.text.word_vectors),
    captioner=one_of(experiment.selection.trained_captioners),
    decoding=one_of(
        experiment.selection.needed_decodings + experiment.selection.rerankings
    ),
    reranking=one_of(experiment.selection.rerankings),
    encoder=one_of(experiment.retrieval.text_encoders),
    retriever=one_of(experiment.selection.needed_retrievers),
    tokenizer=one_of(experiment.finetuning.tokenizers),
    finetuned=one_of(experiment.finetuning.needed),
    language=one_of(experiment.finetuning.languages),
    alignment=one_of(experiment.selection.alignments),
    loss_curves=one_of(list(experiment.config.run.loss_curves)),
    scored=one_of(experiment.selection.scored),
    querybank_scores=one_of(list(experiment.selection.querybank_scores.values())),
    split=one_of(experiment.selection.needed_splits),
    paper=r"[a-z0-9-]+",
    task=r"\d+",


localrules:
    all,
    features,
    captioners,
    captions,
    retrievers,
    metrics,
    figures,


rule features:
    input:
        experiment.features.sealed,


rule captioners:
    input:
        expand(
            "results/{experiment}/captioners/{captioner}/best.safetensors",
            experiment=experiment.selection.name,
            captioner=experiment.selection.trained_captioners,
        ),


rule captions:
    input:
        experiment.captioning.files("captions", "captions.json"),


rule retrievers:
    input:
        expand(
            "results/{experiment}/retrievers/{retriever}/best.safetensors",
            experiment=experiment.selection.name,
            retriever=experiment.selection.needed_retrievers,
        ),


rule metrics:
    input:
        experiment.metrics.files,


rule figures:
    input:
        [target for figure in experiment.figure_rules for target in figure.targets],
