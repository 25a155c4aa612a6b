# Alignments of two frozen encoders, compared over the number of training pairs.

from vitcapr.extensions.alignment import settings as alignment


use rule cpu_job as align with:
    input:
        features=lambda job: features.sealed(
            experiment.config.alignments[job.alignment].image
        ),
        augmented_views=lambda job: [
            features.sealed(view)
            for view in experiment.config.alignments[job.alignment].views
        ],
        text_features=lambda job: features.text_features(
            experiment.config.alignments[job.alignment].text
        ),
        manifest=paths.MANIFEST,
    output:
        scores="results/{experiment}/alignments/{alignment}/scores.csv",
        differences="results/{experiment}/alignments/{alignment}/differences.csv",
        intervals="results/{experiment}/alignments/{alignment}/intervals.csv",
        similarity="results/{experiment}/alignments/{alignment}/similarity.csv",
        seconds="results/{experiment}/alignments/{alignment}/seconds.csv",
        page="results/{experiment}/alignments/{alignment}/page_section.json",
        table=in_report(
            "results/{experiment}/alignments/{alignment}/tables.md",
            "alignment.rst",
            "Retrieval",
            table="alignments",
            alignment="{alignment}",
        ),
    log:
        paths.log("align", "alignment"),
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


use rule cpu_job as draw_alignment with:
    input:
        scores="results/{experiment}/alignments/{alignment}/scores.csv",
    output:
        pictures=report(
            targets.in_formats(alignment.CURVE),
            caption=figure_caption,
            category="Retrieval",
            labels={
                "figure": "alignments over training pairs",
                "alignment": "{alignment}",
            },
        ),
    log:
        paths.log("draw_alignment", "alignment"),
    wildcard_constraints:
        alignment=one_of(experiment.config.run.alignments),
    params:
        **stages.draw_alignment(),
        caption="Recall@1 of the alignments {alignment} on the test split over the number of training pairs, on a "
        "logarithmic axis: the mean over the seeds, a standard deviation each way as a band, and every fit as a dot.",


compared_inputs = alignment.compared_inputs(experiment.config)
atlas_files = {
    kind: {
        read: f"results/{{experiment}}/alignments/{name}/{kind}.csv"
        for read, name in compared_inputs.items()
    }
    for kind in ("intervals", "similarity", "seconds")
}
atlas_files["metrics"] = {
    read: paths.fill(
        paths.CAPTION_SCORES,
        captioner=name,
        decoding=experiment.config.run.decodings[0],
        split="test",
    )
    for read, name in alignment.captioners_by_input(experiment).items()
}


use rule cpu_job as draw_atlas with:
    input:
        **{kind: list_files(named) for kind, named in atlas_files.items()},
    output:
        table=in_report(
            f"{paths.FIGURES}/atlas/atlas.md",
            figure_caption,
            "Retrieval",
            figure="atlas of the inputs",
        ),
        numbers=report(
            f"{paths.FIGURES}/atlas/atlas.csv",
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "atlas of the inputs"},
        ),
        pictures=report(
            targets.in_formats(alignment.ATLAS),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "atlas of the inputs"},
        ),
    log:
        paths.log("draw_atlas"),
    params:
        **stages.draw_atlas(**atlas_files),
        caption="What every input of the alignments gives: calibrated mutual kNN before training, Recall@1 on the test "
        "split after, and CIDEr of the captioners that read it. A shade goes from the lowest to the highest number of "
        "its column.",
