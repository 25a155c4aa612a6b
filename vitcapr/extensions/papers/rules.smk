# The published numbers of a paper beside the scores, and what papers measure of embeddings.


use rule cpu_job as measure_information with:
    input:
        before=lambda job: (
            [retrieval.embeddings(f"untrained/{job.embedded}", job.split)]
            if job.embedded in models.finetuned_dual_encoders
            else []
        ),
        after="results/{experiment}/embeddings/{embedded}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/information/{embedded}/{split}/metrics.json",
    log:
        "results/{experiment}/logs/measure_information/{embedded}.{split}.log",
    wildcard_constraints:
        embedded=one_of(models.retrievers + models.finetuned_dual_encoders),
    params:
        **stages.measure_information(model=lambda wildcards: wildcards.embedded),


use rule cpu_job as paper_tables with:
    input:
        summary="results/{experiment}/summary.csv",
        cards=targets.cards,
        ranks=retrieval.ranks,
    output:
        page=in_report(
            "tables/{paper}/{paper}.md",
            "paper_page.rst",
            "Beside the paper",
            table="paper, this build, literature",
        ),
        latex=in_report(
            "tables/{paper}/{paper}.tex",
            "paper_latex.rst",
            "Beside the paper",
            table="the same for LaTeX",
        ),
        numbers=in_report(
            "tables/{paper}/{paper}.csv",
            "paper_numbers.rst",
            "Beside the paper",
            table="the published numbers",
        ),
        section="results/{experiment}/tables/{paper}/page_section.json",
    log:
        "results/{experiment}/logs/paper_tables/{paper}.log",
    wildcard_constraints:
        paper=r"[a-z0-9-]+",
    params:
        **stages.paper_tables(),


use rule cpu_job as pair_claims with:
    input:
        manifest="results/{experiment}/data/manifest.json",
        pairs="results/{experiment}/data/pairs.parquet",
        cleaning="results/{experiment}/data/cleaning.json",
    output:
        table="results/{experiment}/tables/claims.md",
    log:
        "results/{experiment}/logs/pair_claims.log",
    params:
        **stages.pair_claims(),
