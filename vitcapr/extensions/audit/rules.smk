# Audits of the data set: captions that are probably wrong, leaks, odd captions.


use rule cpu_job as audit_data with:
    input:
        features=lambda job: features.sealed(experiment.config.audits[job.audit].image),
        text_features=lambda job: features.text_features(
            experiment.config.audits[job.audit].text
        ),
        manifest=paths.MANIFEST,
    output:
        captions="results/{experiment}/audits/{audit}/audit.parquet",
        leaks="results/{experiment}/audits/{audit}/leaks.csv",
        table="results/{experiment}/audits/{audit}/tables.md",
        pictures=in_report(
            "results/{experiment}/audits/{audit}/index.html",
            "audit.rst",
            "Data",
            table="audit",
            audit="{audit}",
        ),
        page="results/{experiment}/audits/{audit}/page_section.json",
    log:
        paths.log("audit_data", "audit"),
    wildcard_constraints:
        audit=one_of(experiment.config.run.audits),
    threads: 4
    resources:
        **growing(runtime=240, mem_mb=8000),
    params:
        **stages.audit_data(name=lambda job: job.audit),
