# index.html: what the experiment found, on one page.

from vitcapr.extensions.first_page.page_files import page_files, run_again
from vitcapr.extensions.first_page.settings import PAGE


use rule cpu_job as first_page with:
    input:
        summary=paths.SUMMARY,
        manifest=paths.MANIFEST,
        results=page_files(experiment),
    output:
        page=PAGE,
    log:
        paths.log("first_page"),
    params:
        **stages.first_page(
            split=targets.page_split,
            figures=bool(targets.figures),
            command=run_again(
                workflow.overwrite_configfiles, workflow.config_settings.config
            ),
        ),
