"""The explorer of a toy: the captions are embedded with its retriever."""

import json
import re
from pathlib import Path

import pytest

from tests.forks import Forks

pytestmark = pytest.mark.timeout(1800)


def test_the_explorer_of_a_toy(project: Path, forks: Forks) -> None:
    done = forks.run("-m", "vitcapr", "explore", "results/tiny", "--output", "explored", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("explored/index.html: 8 images, ")
    script = (project / "explored/data/overview.js").read_text(encoding="utf-8")
    overview = json.loads(re.fullmatch(r'explorer\.receive\("overview",(.*)\);\n', script)[1])  # type: ignore[index]
    systems = [system["name"] for system in overview["systems"]]
    assert systems == [f"attention/{way}" for way in ("beam", "greedy", "reranked", "oracle")]
    assert [space["written"] for space in overview["spaces"]] == [systems]
    names = {column["name"] for column in overview["columns"]}
    assert names >= {f"{system}:rank@recommended" for system in systems}
    assert names >= {"attention/reranked:changed", "attention/beam:wrong_claims", "recommended:i2t"}
    details = (project / "explored/data/details-0-0.js").read_text(encoding="utf-8")
    assert '"grid":[4,4]' in details
