"""No value reaches a shell unquoted: every command is that of a stage, which is quoted, with a quoted log."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
RULES = [REPOSITORY / "Snakefile", *sorted((REPOSITORY / "rules").glob("*.smk"))]


def test_rules_run_only_the_quoted_commands_of_stages() -> None:
    text = "\n".join(file.read_text() for file in RULES)
    commands = re.findall(r"^\s+shell:\s+(.*)$", text, flags=re.MULTILINE)
    assert set(commands) == {'"{params.command} --log {log:q}"'}
    assert not re.search(r"^\s+(run|script|notebook|wrapper):", text, flags=re.MULTILINE)
