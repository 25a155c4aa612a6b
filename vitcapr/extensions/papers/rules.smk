# The published numbers of a paper beside the scores, and what papers measure of embeddings.

from vitcapr.extensions.papers import settings as papers


use rule cpu_job as measure_information with:
    input:
        before=lambda job: (
            [retrieval.embeddings(f"untrained/{job.embedded}", job.split)]
            if job.embedded not in models.retrievers
            else []
        ),
        after=paths.EMBEDDINGS,
        manifest=paths.MANIFEST,
    output:
        metrics="results/{experiment}/metrics/information/{embedded}/{split}/metrics.json",
    log:
        paths.log("measure_information", "embedded", "split"),
    wildcard_constraints:
        embedded=one_of(models.dual_encoders),
    params:
        **stages.measure_information(model=lambda wildcards: wildcards.embedded),


use rule cpu_job as paper_tables with:
    input:
        summary=paths.SUMMARY,
        cards=targets.cards,
        ranks=retrieval.ranks,
    output:
        page=in_report(
            "results/{experiment}/tables/{paper}/{paper}.md",
            "paper_page.rst",
            "Beside the paper",
            table="paper, this build, literature",
        ),
        latex=in_report(
            "results/{experiment}/tables/{paper}/{paper}.tex",
            "paper_latex.rst",
            "Beside the paper",
            table="the same for LaTeX",
        ),
        numbers=in_report(
            "results/{experiment}/tables/{paper}/{paper}.csv",
            "paper_numbers.rst",
            "Beside the paper",
            table="the published numbers",
        ),
        section="results/{experiment}/tables/{paper}/page_section.json",
    log:
        paths.log("paper_tables", "paper"),
    wildcard_constraints:
        paper=r"[a-z0-9-]+",
    params:
        **stages.paper_tables(),


use rule cpu_job as pair_claims with:
    input:
        manifest=paths.MANIFEST,
        pairs=paths.PAIRS,
        cleaning=paths.CLEANING,
    output:
        table="results/{experiment}/tables/claims.md",
    log:
        paths.log("pair_claims"),
    params:
        **stages.pair_claims(),


use rule cpu_job as draw_pca with:
    input:
        embeddings=paths.fill(paths.EMBEDDINGS, embedded="{retriever}"),
        manifest=paths.MANIFEST,
        image_features=lambda job: papers.before_training(experiment, job.retriever)[0],
        text_features=lambda job: papers.before_training(experiment, job.retriever)[1],
    output:
        pictures=report(
            targets.in_formats(papers.PCA),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "the shared space, PCA", "split": "{split}"},
        ),
    log:
        paths.log("draw_pca", "retriever", "split"),
    wildcard_constraints:
        retriever=one_of(models.ranked),
    params:
        **stages.draw_pca(),
        caption="The images and captions of the {split} split on the two main directions of the space of {retriever}; "
        "where the retriever reads features of both, these as well, as they were before training.",


use rule cpu_job as draw_bars with:
    input:
        metrics=list_files(retrieval.recall_scores),
    output:
        pictures=report(
            targets.in_formats(papers.BARS),
            caption=figure_caption,
            category="Retrieval",
            labels={"figure": "recall of all retrievers, bars", "split": "{split}"},
        ),
    log:
        paths.log("draw_bars", "split"),
    params:
        **stages.draw_bars(metrics=retrieval.recall_scores),
        caption="Recall@1, 5 and 10 of all retrievers on the {split} split as bars from 0; for a retriever that was "
        "trained with several seeds the mean.",


use rule cpu_job as draw_pair_lengths with:
    input:
        pairs=paths.PAIRS,
        manifest=paths.MANIFEST,
    output:
        pictures=report(
            targets.in_formats(papers.PAIR_LENGTHS),
            caption=figure_caption,
            category="Data",
            labels={"figure": "text lengths by language"},
        ),
    log:
        paths.log("draw_pair_lengths"),
    params:
        **stages.draw_pair_lengths(),
        caption="How long the texts of the pairs are in each language, before and after cleaning: in words, for Chinese "
        "in characters. Texts of which cleaning leaves nothing are not counted.",
