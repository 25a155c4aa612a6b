# For all rules: the allowed values of the wildcards, and the targets of the command line.
# Rules with a priority run first if there are few cores, because a long chain of jobs waits for them. No job waits for a
# figure. Slow figures run before fast ones, so that no core is idle at the end.


definitions = Definitions(experiment.config)


wildcard_constraints:
    experiment=experiment.name,
    backbone=one_of(experiment.backbones),
    vectors=one_of(experiment.word_vectors),
    captioner=one_of(experiment.trained_captioners),
    decoding=one_of(experiment.needed_decodings + experiment.rerankings),
    reranking=one_of(experiment.rerankings),
    encoder=one_of(experiment.text_encoders),
    retriever=one_of(experiment.needed_retrievers),
    tokenizer=one_of(experiment.tokenizers),
    finetuned=one_of(experiment.needed_dual_encoders),
    language=one_of(experiment.languages),
    loss_curves=one_of(list(experiment.config.run.loss_curves)),
    scored=one_of(experiment.scored),
    querybank_scores=one_of(list(experiment.querybank_scores.values())),
    split=one_of(experiment.needed_splits),
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
        list(map(experiment.sealed, experiment.backbones)),


rule captioners:
    input:
        experiment.weights("captioners", experiment.trained_captioners),


rule captions:
    input:
        experiment.captions_files,


rule retrievers:
    input:
        experiment.weights("retrievers", experiment.needed_retrievers),


rule metrics:
    input:
        experiment.metrics,


rule figures:
    input:
        [target for figure in experiment.figure_rules for target in figure.targets],


# The templates of the rules: use rule cpu_job as NAME with: ...


rule cpu_job:
    log:
        "results/{experiment}/logs/cpu_job.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    shell:
        "{params.command} --log {log:q}"


use rule cpu_job as gpu_job with:
    conda:
        "../envs/gpu.yaml"
    threads: 8
