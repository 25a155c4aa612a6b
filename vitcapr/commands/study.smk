# The rules are part of the package vitcapr. Settings: config.yaml and experiments/.
from vitcapr.experiment.paths import SNAKEFILE

# The file of an experiment replaces config.yaml.
if not workflow.overwrite_configfiles:

    configfile: "config.yaml"


module vitcapr:
    snakefile:
        SNAKEFILE
    config:
        config


use rule * from vitcapr
