"""The RO-Crate of a publication: what made its files, in the vocabulary that repositories read.

Source: Process Run Crate, https://w3id.org/ro/wfrun/process/0.5.
"""

from collections.abc import Sequence
from typing import Any

from vitcapr.extensions.publications.contents import EXPERIMENT, Publication
from vitcapr.pipeline.records import Run
from vitcapr.progress import Reporter

_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_PROGRAM = "#vitcapr"


def crate_metadata(listed: Publication, runs: Sequence[Run], report: Reporter) -> dict[str, Any] | None:
    """Return the content of ``ro-crate-metadata.json``: the files, and an action for each job behind them.

    None, with a line, where the library ``rocrate`` is not installed.
    """
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        report.line("no ro-crate-metadata.json: pip install 'vitcapr[ro-crate]'")
        return None
    crate = ROCrate()
    crate.name = f"Results of the experiment {listed.experiment}"
    crate.description = "Scores of image captioning and retrieval, with what recomputes them: vitcapr verify."
    crate.datePublished = max((run.time for run in runs), default="1970-01-01")
    crate.license = "; ".join(sorted(f"{name}: {each['licence'] or 'not stated'}" for name, each in listed.terms.items()))
    crate.root_dataset["conformsTo"] = crate.add(
        ContextEntity(crate, _PROFILE, {"@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"})
    )
    files = {
        name: crate.add_file(dest_path=name, properties={"contentSize": str(each.size), "sha256": each.sha256})
        for name, each in sorted(listed.files.items())
    }
    name, _, version = listed.program.partition(" ")
    about = {"@type": "SoftwareApplication", "name": name, "softwareVersion": version}
    program = crate.add(ContextEntity(crate, _PROGRAM, about))
    for run in runs:
        inputs, outputs = (
            [files[named] for path in each if (named := f"{EXPERIMENT}/{run.place(path)}") in files]
            for each in (run.inputs, run.outputs)
        )
        action = {"@type": "CreateAction", "name": run.name, "startTime": run.made["started"]}
        made = crate.add(ContextEntity(crate, f"#{run.name}", action))
        made["instrument"], made["object"], made["result"] = program, inputs, outputs
        crate.root_dataset.append_to("mentions", made)
    return dict(crate.metadata.generate())
