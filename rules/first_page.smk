# index.html: what the experiment found, on one page.


use rule cpu_job as first_page with:
    input:
        **targets.page_inputs,
        summary="results/{experiment}/summary.csv",
        manifest="results/{experiment}/data/manifest.json",
    output:
        page="results/{experiment}/index.html",
    log:
        "results/{experiment}/logs/first_page.log",
    params:
        **stages.first_page(
            split=targets.page_split,
            command=run_again(
                workflow.overwrite_configfiles, workflow.config_settings.config
            ),
            **targets.page_files,
        ),
