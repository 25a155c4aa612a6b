"""A logger of Snakemake for tests: every job that begins, as a line of JSON on standard output."""

import json
import logging

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

FIELDS = ("rule_name", "output", "log", "threads", "shellcmd", "wildcards", "resources")


class LogHandler(LogHandlerBase):
    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) is LogEvent.JOB_INFO:
            job = {field: getattr(record, field) for field in FIELDS}
            job |= {field: {key: str(value) for key, value in job[field].items()} for field in FIELDS[-2:]}
            print(json.dumps(job), flush=True)
        elif record.levelno >= logging.ERROR:
            print(record.msg, flush=True)
