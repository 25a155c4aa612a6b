# Alignments of two frozen encoders, compared over the number of training pairs.


use rule cpu_job as align with:
    input:
        features=experiment.features,
        augmented_views=experiment.augmented_views,
        text_features=experiment.text_features,
        manifest="results/{experiment}/data/manifest.json",
    output:
        scores="results/{experiment}/alignments/{alignment}/scores.csv",
        differences="results/{experiment}/alignments/{alignment}/differences.csv",
        intervals="results/{experiment}/alignments/{alignment}/intervals.csv",
        similarity="results/{experiment}/alignments/{alignment}/similarity.csv",
        seconds="results/{experiment}/alignments/{alignment}/seconds.csv",
        table=in_report(
            "alignments/{alignment}/tables.md",
            "alignment",
            "Retrieval",
            table="alignments",
            alignment="{alignment}",
        ),
    log:
        "results/{experiment}/logs/align/{alignment}.log",
    priority: 7
    threads: 8
    resources:
        mem_mb=8000,
        runtime=720,
    params:
        **stages.align(language=experiment.config.text.language),
