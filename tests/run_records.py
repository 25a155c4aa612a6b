"""The record of a job, for tests to change."""

from typing import Any

from vitcapr.pipeline.run_records import FORMAT

RECORD: dict[str, Any] = {
    "format": FORMAT,
    "stage": "decode",
    "command": "python -m vitcapr stage decode",
    "code": {"vitcapr/decoding/beam.py": "0123"},
    "settings": {},
    "values": {},
    "files": {},
    "inputs": {},
    "outputs": {},
    "made": {
        **dict.fromkeys(("user", "host", "platform", "python"), "x"),
        "started": "2026-01-01",
        "seconds": 1.5,
        "cpu_seconds": 1.0,
        "threads": 1,
        "peak_memory_mb": 10,
    },
    "result_cache": None,
}
