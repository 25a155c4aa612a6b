# index.html: what the experiment found, on one page.


use rule cpu_job as first_page with:
    input:
        summary=paths.SUMMARY,
        manifest=paths.MANIFEST,
        results=targets.page_files,
    output:
        page=paths.PAGE,
    log:
        paths.log("first_page"),
    params:
        **stages.first_page(
            split=targets.page_split,
            command=run_again(
                workflow.overwrite_configfiles, workflow.config_settings.config
            ),
        ),
