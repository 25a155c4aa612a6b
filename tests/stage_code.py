"""For processes to fork: the code of every stage is read once, before the forks."""

from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.stage import each_stage

for stage in each_stage():
    job_code(stage.module, {})
