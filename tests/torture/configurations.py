"""Hostile configurations: YAML, and the settings of a stage as JSON."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.torture.hostile import damaged, with_value
from tests.torture.runs import server
from tests.torture.sandbox import Job
from tests.torture.tally import Tally

DEEP = 5000
WRITTEN = (
    "a: &a [*a]\n",
    "experiment: &e {x: *e}\n",
    "[" * DEEP + "]" * DEEP,
    "a: " + "{b: " * DEEP + "1" + "}" * DEEP,
    "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "text: {language: !!python/object/apply:os.system ['touch PWNED']}\n",
    "seed: " + "9" * 10_000,
    "seed: .inf\n",
    "captioners: {a: {training: {phases: [{learning_rate: .nan}]}}}\n",
    "captioners: {a: {training: {phases: [{learning_rate: 1.0e+400}]}}}\n",
    "figures: 5\n",
    "grid: 5\n",
    "experiment: ../../escape\n",
    "experiment: 'x;touch PWNED'\n",
    "captioners: {'$(touch PWNED)': {backbone: vit}}\n",
    "? [a, b]\n: c\n",
    "experiment: 2024-01-01\n",
    "experiment: !!binary aGVsbG8=\n",
    "<<: [1, 2]\n",
    "a: b: c\n",
    "\tx: 1\n",
    "%YAML 9.9\n---\na: 1\n",
    "--- 1\n--- 2\n",
    "a: 1\na: 2\nexperiment: [twice]\n",
    "",
    "null",
    "- a\n- b\n",
    'experiment: "\\0"\n',
)


def check(box: Path, content: bytes, name: str, tally: Tally) -> None:
    """``vitcapr config check`` says in one line what is wrong, or that it is a configuration."""
    (box / "hostile.yaml").write_bytes(content)
    run = server().run(box, ["config", "check", "--configfile", "hostile.yaml"])
    problem = None if run.in_one_line or (run.code == 0 and not run.traced) else run.end
    if (box / "PWNED").exists():
        problem = "it ran a command"
    tally.add("inputs, configurations", name, problem)


def check_written(box: Path, tally: Tally) -> None:
    for content in WRITTEN:
        check(box, content.encode(), repr(content[:40]), tally)
        check(box, content.encode("utf-16"), f"{content[:40]!r} in UTF-16", tally)


def check_grown(project: Path, box: Path, new: Any, draw: random.Random, tally: Tally) -> None:
    """A configuration of the project with another value in one place, or damaged as bytes."""
    source = (project / draw.choice(("tiny.yaml", "towers.yaml", "pairs.yaml"))).read_text(encoding="utf-8")
    if draw.random() < 0.3:
        content, name = damaged(source.encode(), draw), "other bytes"
    else:
        changed = with_value(yaml.safe_load(source), new, draw)
        try:
            content, name = yaml.safe_dump(changed).encode("utf-8", "surrogatepass"), f"{str(new)[:40]!r} in it"
        except yaml.YAMLError:
            return
    check(box, content, name, tally)


def settings_grown(job: Job, box: Path, new: Any, draw: random.Random, tally: Tally) -> None:
    """The settings of a stage with another value in one place. What is accepted has to end well, too."""
    words = job.by_hand
    if "--settings" not in words:
        return
    at = words.index("--settings") + 1
    changed = json.dumps(with_value(json.loads(words[at]), new, draw))
    if len(changed) > 50_000:
        return
    job.sandbox(box)
    run = server().run(box, [*words[:at], changed, *words[at + 1 :]], seconds=60)
    problem = None if run.in_one_line or (run.code == 0 and not run.hung) else run.end
    tally.add("inputs, settings of stages", f"{job.name} {changed[:300]}", problem)
    shutil.rmtree(box)
