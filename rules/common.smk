# For all rules: the allowed values of the wildcards, and the targets of the command line.
# Rules with a priority run first if there are few cores, because a long chain of jobs waits for them. No job waits for a
# figure. Slow figures run before fast ones, so that no core is idle at the end.


models, features = experiment.models, experiment.features
captioning, retrieval = experiment.captioning, experiment.retrieval
targets = experiment.targets
figure_caption = str(WORKFLOW / "workflow/report/figure.rst")


wildcard_constraints:
    experiment=experiment.name,
    backbone=one_of(models.backbones),
    vectors=one_of(models.word_vectors),
    captioner=one_of(models.trained_captioners),
    decoding=one_of(models.needed_decodings + models.rerankings),
    reranking=one_of(models.rerankings),
    encoder=one_of(models.text_encoders),
    retriever=one_of(models.needed_retrievers),
    polyglot=one_of(models.polyglots),
    language=one_of(models.languages),
    scored=one_of(models.scored),
    querybank_scores=one_of(list(models.querybank_scores.values())),
    split=one_of(models.needed_splits),
    task=r"\d+",


rule features:
    input:
        list(map(features.sealed, models.backbones)),


rule captioners:
    input:
        targets.weights("captioners", models.trained_captioners),


rule captions:
    input:
        captioning.caption_files(paths.CAPTIONS),


rule retrievers:
    input:
        targets.weights("retrievers", models.needed_retrievers),


rule metrics:
    input:
        targets.metrics,


rule figures:
    input:
        targets.figures,


# The templates of the rules: use rule cpu_job as NAME with: ...


rule cpu_job:
    log:
        paths.log("cpu_job"),
    conda:
        conda_environment("cpu")
    threads: 1
    resources:
        **growing(runtime=60),
    shell:
        "{params.command} --log {log:q}"


use rule cpu_job as gpu_job with:
    conda:
        conda_environment("gpu")
    threads: 8
