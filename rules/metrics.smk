# Captions -> scores -> tables.


use rule cpu_job as paraphrases with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        paraphrases=stages.paraphrases.folder("paraphrases", "text/paraphrases/{split}"),
    log:
        "results/{experiment}/logs/paraphrases/{split}.log",
    params:
        **stages.paraphrases(),


use rule cpu_job as score with:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
        vocabulary=captioning.vocabulary,
        paraphrases=captioning.paraphrases,
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/metrics.json",
        per_image="results/{experiment}/metrics/{captioner}/{decoding}/{split}/per_image.parquet",
    log:
        "results/{experiment}/logs/score/{captioner}.{decoding}.{split}.log",
    priority: 10
    params:
        **stages.score(
            model=lambda wildcards: wildcards.captioner,
        ),


use rule gpu_job as score_similarity with:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
        features=features.clip_features,
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/similarity.json",
    log:
        "results/{experiment}/logs/score_similarity/{captioner}.{decoding}.{split}.log",
    threads: 4
    resources:
        **stages.score_similarity.on_gpu(runtime=60),
    params:
        **stages.score_similarity(
            model=lambda wildcards: wildcards.captioner,
        ),


use rule cpu_job as summary with:
    input:
        metrics=targets.metrics,
    output:
        summary=in_report(
            "summary.csv",
            "../workflow/report/summary.rst",
            "Scores",
            table="all scores, tidy",
        ),
        table=in_report(
            "tables/scores.md",
            "../workflow/report/scores.rst",
            "Scores",
            table="scores",
        ),
    log:
        "results/{experiment}/logs/summary.log",
    params:
        **stages.summary(),


use rule cpu_job as spread with:
    input:
        summary="results/{experiment}/summary.csv",
    output:
        spread="results/{experiment}/tables/spread.csv",
        pairs="results/{experiment}/tables/spread_pairs.csv",
        table=in_report(
            "tables/spread.md",
            "../workflow/report/spread.rst",
            "Scores",
            table="over seeds",
        ),
    log:
        "results/{experiment}/logs/spread.log",
    params:
        **stages.spread(),


use rule cpu_job as compare with:
    input:
        before=captioning.compared("metrics.json"),
        before_images=captioning.compared("per_image.parquet"),
        after="results/{experiment}/metrics/{captioner}/{decoding}/{split}/metrics.json",
        after_images="results/{experiment}/metrics/{captioner}/{decoding}/{split}/per_image.parquet",
        before_claims=captioning.compared_claims,
        after_claims=captioning.checked_claims,
    output:
        comparison="results/{experiment}/comparisons/{captioner}/{decoding}/{split}/comparison.json",
        table=in_report(
            "comparisons/{captioner}/{decoding}/{split}/comparison.md",
            "../workflow/report/comparison.rst",
            "Scores",
            table="before and after",
            system="{captioner} {decoding}",
        ),
    log:
        "results/{experiment}/logs/compare/{captioner}.{decoding}.{split}.log",
    params:
        **stages.compare(),


use rule cpu_job as differences with:
    input:
        **targets.compared,
    output:
        differences="results/{experiment}/tables/differences.csv",
        table=in_report(
            "tables/differences.md",
            "../workflow/report/differences.rst",
            "Scores",
            table="paired differences",
        ),
    log:
        "results/{experiment}/logs/differences.log",
    params:
        **stages.differences(ranks=targets.compared_ranks),


use rule cpu_job as ablate with:
    input:
        ranks=retrieval.ablated_ranks,
    output:
        numbers="results/{experiment}/tables/ablations.csv",
        table=in_report(
            "tables/ablations.md",
            "../workflow/report/ablations.rst",
            "Scores",
            table="ablations",
        ),
    log:
        "results/{experiment}/logs/ablate.log",
    params:
        **stages.ablate(),
