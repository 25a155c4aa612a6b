"""No value reaches a shell unquoted: rules fill in the command of their stage, which is quoted, and quoted files."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
RULES = [REPOSITORY / "Snakefile", *sorted((REPOSITORY / "rules").glob("*.smk"))]


def commands(text: str) -> list[str]:
    """What stands below each ``shell:``, up to the next line that is indented less."""
    return re.findall(r"^( +)shell:\s*?(.*(?:\n\1 +\S.*)*)", text, flags=re.MULTILINE)


def unquoted(text: str) -> list[str]:
    """The placeholders of the commands that are not quoted."""
    found = [part for _, command in commands(text) for part in re.findall(r"{([^{}]*)}", command)]
    return [part for part in found if part != "params.command" and not part.endswith(":q")]


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_every_placeholder_of_a_command_is_quoted(file: Path) -> None:
    text = file.read_text()
    assert len(commands(text)) == len(re.findall(r"^\s*shell:", text, flags=re.MULTILINE))
    assert unquoted(text) == []


def test_the_check_above_can_fail() -> None:
    rule = (
        'rule a:\n    shell:\n        "x {wildcards.a} {input:q}"\n        " {params.b} {params.command}"\n\n\nrule b:'
    )
    assert unquoted(rule) == ["wildcards.a", "params.b"]


def test_no_rule_runs_anything_else() -> None:
    """A script, a notebook or a ``run`` block would take names past the check above."""
    for file in RULES:
        assert not re.search(r"^\s+(run|script|notebook|wrapper):", file.read_text(), flags=re.MULTILINE), file
