"""The RO-Crate of a publication: what made its files, in the vocabulary that repositories read.

Source: Process Run Crate, https://w3id.org/ro/wfrun/process/0.5.
"""

from collections.abc import Sequence
from typing import Any

from vitcapr.extensions.publications.publication import EXPERIMENT, Publication
from vitcapr.pipeline.run_records import Run
from vitcapr.progress import Reporter

_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"


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

    def entity(identifier: str, kind: str, **properties: str) -> Any:
        return crate.add(ContextEntity(crate, identifier, {"@type": kind, **properties}))

    crate.name, crate.datePublished = f"Results of {listed.experiment}", max(run.time for run in runs)
    crate.description = "Scores of image captioning and retrieval, with what recomputes them: vitcapr verify."
    crate.license = "; ".join(f"{name}: {one['licence'] or 'not stated'}" for name, one in listed.terms.items())
    crate.root_dataset["conformsTo"] = entity(_PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    program = entity("#vitcapr", "SoftwareApplication", name="vitcapr", softwareVersion=listed.program.split()[-1])
    files = {
        name: crate.add_file(dest_path=name, properties={"contentSize": str(each.size), "sha256": each.sha256})
        for name, each in sorted(listed.files.items())
    }
    for run in runs:
        action = entity(f"#{run.name}", "CreateAction", name=run.name, startTime=run.made["started"])
        action["instrument"] = program
        for key, some in (("object", run.inputs), ("result", run.outputs)):
            names = (f"{EXPERIMENT}/{run.place(path)}" for path in some)
            action[key] = [files[name] for name in names if name in files]
        crate.root_dataset.append_to("mentions", action)
    return dict(crate.metadata.generate())
