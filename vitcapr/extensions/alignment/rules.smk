# Alignments of two frozen encoders, compared over the number of training pairs.


use rule cpu_job as align with:
    input:
        features=lambda job: features.sealed(
            experiment.config.alignments[job.alignment].image
        ),
        augmented_views=lambda job: [
            features.sealed(view)
            for view in experiment.config.alignments[job.alignment].views
        ],
        text_features=lambda job: f"results/{job.experiment}/text_features/{experiment.config.alignments[job.alignment].text}/manifest.json",
        manifest="results/{experiment}/data/manifest.json",
    output:
        scores="results/{experiment}/alignments/{alignment}/scores.csv",
        differences="results/{experiment}/alignments/{alignment}/differences.csv",
        intervals="results/{experiment}/alignments/{alignment}/intervals.csv",
        similarity="results/{experiment}/alignments/{alignment}/similarity.csv",
        seconds="results/{experiment}/alignments/{alignment}/seconds.csv",
        page="results/{experiment}/alignments/{alignment}/page_section.json",
        table=in_report(
            "alignments/{alignment}/tables.md",
            "alignment.rst",
            "Retrieval",
            table="alignments",
            alignment="{alignment}",
        ),
    log:
        "results/{experiment}/logs/align/{alignment}.log",
    wildcard_constraints:
        alignment=one_of(experiment.config.run.alignments),
    priority: 7
    threads: 8
    resources:
        **growing(runtime=720, mem_mb=8000),
    params:
        **stages.align(
            name=lambda job: job.alignment,
            language=experiment.config.text.language,
            content_check=experiment.config.features.content_check,
        ),
