# Captions -> scores -> tables.


use rule cpu_job as paraphrases with:
    input:
        manifest=paths.MANIFEST,
    output:
        paraphrases=stages.paraphrases.folder("paraphrases", paths.PARAPHRASES),
    log:
        paths.log("paraphrases", "split"),
    params:
        **stages.paraphrases(),


use rule cpu_job as score with:
    input:
        captions=paths.CAPTIONS,
        manifest=paths.MANIFEST,
        vocabulary=captioning.vocabulary,
        paraphrases=captioning.paraphrases,
    output:
        metrics=paths.CAPTION_SCORES,
        per_image=paths.PER_IMAGE,
    log:
        paths.log("score", "captioner", "decoding", "split"),
    priority: 10
    params:
        **stages.score(
            model=lambda wildcards: wildcards.captioner,
        ),


use rule gpu_job as score_similarity with:
    input:
        captions=paths.CAPTIONS,
        manifest=paths.MANIFEST,
        features=features.clip_features,
    output:
        metrics=paths.SIMILARITY,
    log:
        paths.log("score_similarity", "captioner", "decoding", "split"),
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
            paths.SUMMARY,
            "../workflow/report/summary.rst",
            "Scores",
            table="all scores, tidy",
        ),
        table=in_report(
            paths.SCORE_TABLE,
            "../workflow/report/scores.rst",
            "Scores",
            table="scores",
        ),
    log:
        paths.log("summary"),
    params:
        **stages.summary(),


use rule cpu_job as spread with:
    input:
        summary=paths.SUMMARY,
    output:
        spread=paths.SPREAD,
        pairs=paths.SPREAD_PAIRS,
        table=in_report(
            paths.SPREAD_TABLE,
            "../workflow/report/spread.rst",
            "Scores",
            table="over seeds",
        ),
    log:
        paths.log("spread"),
    params:
        **stages.spread(),


use rule cpu_job as compare with:
    input:
        before=partial(captioning.compared, pattern=paths.CAPTION_SCORES),
        before_images=partial(captioning.compared, pattern=paths.PER_IMAGE),
        after=paths.CAPTION_SCORES,
        after_images=paths.PER_IMAGE,
        before_claims=captioning.compared_claims,
        after_claims=captioning.checked_claims,
    output:
        comparison=paths.COMPARISON,
        table=in_report(
            paths.COMPARISON_TABLE,
            "../workflow/report/comparison.rst",
            "Scores",
            table="before and after",
            system="{captioner} {decoding}",
        ),
    log:
        paths.log("compare", "captioner", "decoding", "split"),
    params:
        **stages.compare(),


use rule cpu_job as differences with:
    input:
        **targets.compared,
    output:
        differences=paths.DIFFERENCES,
        table=in_report(
            paths.DIFFERENCE_TABLE,
            "../workflow/report/differences.rst",
            "Scores",
            table="paired differences",
        ),
    log:
        paths.log("differences"),
    params:
        **stages.differences(ranks=targets.compared_ranks),


use rule cpu_job as ablate with:
    input:
        ranks=retrieval.ablated_ranks,
    output:
        numbers=paths.ABLATIONS,
        table=in_report(
            paths.ABLATION_TABLE,
            "../workflow/report/ablations.rst",
            "Scores",
            table="ablations",
        ),
    log:
        paths.log("ablate"),
    params:
        **stages.ablate(),
