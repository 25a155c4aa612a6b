# The whole DAG. `snakemake` runs everything in the configuration. A target (`snakemake features`, captions, metrics,
# figures) stops there. To run another experiment: `snakemake --configfile experiments/NAME.yaml`.

import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from snakemake.utils import min_version

from vitcapr.errors import UserError

try:
    import vitcapr.config.experiment  # Reads the extensions.
except UserError as error:
    sys.exit(f"error: {error}")
from vitcapr.experiment import paths
from vitcapr.experiment.experiment import Experiment, source_of_configuration
from vitcapr.experiment.paths import RESULTS, WORKFLOW, conda_environment, extend_path
from vitcapr.experiment.rule import (
    check_rules,
    growing,
    in_report,
    keep_off_gpus,
    list_files,
    one_of,
)
from vitcapr.experiment.staleness import let_records_decide
from vitcapr.loader import files_of_extensions
from vitcapr.pipeline.stage import import_own_stages

min_version("9.19")


# The file of another experiment replaces config.yaml. A module has the configuration that the outer workflow gives it.
if not (workflow.overwrite_configfiles or workflow.modifier.parent_modifier):

    configfile: "config.yaml"


# In a workflow that uses this one as a module, a prefix may stand before all paths.
results = Path(workflow.modifier.path_modifier.prefix or "") / RESULTS
partition = (workflow.resource_settings.default_resources or {}).get("slurm_partition")
try:
    import_own_stages()
    experiment = Experiment.from_config(
        config,
        where=source_of_configuration(workflow),
        results=results,
        on_cluster=partition is not None,
    )
    # A plan, a report and --unlock need no photographs. They have no cores.
    runs = workflow.resource_settings.cores or workflow.resource_settings.nodes
    if workflow.is_main_process and runs and not workflow.output_settings.dryrun:
        experiment.locate_images()
except UserError as error:
    sys.exit(f"error: {error}")

stages = experiment.stages
extend_path()
# Slurm sends SIGUSR1 to all processes of a job shortly before its time limit. Stages that save their state set their own
# handler; Snakemake itself would exit, and stop the stage while it saves.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
if workflow.is_main_process:
    folder = results / experiment.name
    logger.info(experiment.contents, extra={"results": folder})


report: "workflow/report/workflow.rst"


include: "rules/common.smk"


# A file of rules in the folder is enough. An extension has its own in rules.smk.
for rules_file in sorted(
    Path(workflow.current_basedir.get_path_or_uri(False), "rules").glob("*.smk")
):
    if rules_file.name != "common.smk":

        include: rules_file


for rules_file in files_of_extensions("rules.smk"):

    include: rules_file


rule all:
    default_target: True
    input:
        rules.metrics.input,
        rules.figures.input,
        targets.tables,


# Snakemake runs the section onstart of the main Snakefile alone, and a study uses this file as a module.
if workflow.is_main_process:
    workflow._onstart = lambda log, then=workflow._onstart: (
        import_module("vitcapr.commands.forecast").begin(workflow, experiment, folder),
        then(log),
    )
let_records_decide(workflow, results)
try:
    check_rules(workflow.rules)
except UserError as error:
    sys.exit(f"error: {error}")
if partition is not None and experiment.config.device == "cpu":
    keep_off_gpus(workflow.rules, partition)
