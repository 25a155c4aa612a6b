"""What a signature declares, and that every stage's declaration is sound."""

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, get_args

import pytest

from vitcapr.commands.stage import _from_file, stages_page
from vitcapr.config.base import Section, StageSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.pipeline.rule import RuleStage
from vitcapr.pipeline.stage import CodeHash, Form, In, Out, Role, Stage, each_stage, find_stage, stage
from vitcapr.progress import Reporter

STAGES = list(each_stage())
DOCS = Path(__file__).parents[2] / "docs"


Words = Annotated[Path, "A file of words"]
Model = Annotated[Path, "A folder of weights", ("weights", "card")]


class Inner(Section):
    rate: float = 0.1
    device: str = "cpu"


class Settings(StageSettings):
    training: Inner = Inner()


@stage(cached=True, device="training.device", execution_only={"store"})
def toy(
    one: In[Words],
    several: list[In[Words]],
    named: dict[str, In[Words]],
    grouped: dict[str, list[In[Words]]],
    split: Annotated[str, "the split"],
    settings: Settings,
    report: Reporter,
    code: CodeHash,
    model: Out[Model],
    store: str = "here",
    maybe: In[Model] | None = None,
) -> None:
    """Do what toys do.

    And more.
    """


def test_a_signature_says_everything() -> None:
    found = {name: (p.role, p.form, p.required) for name, p in toy.parameters.items()}
    assert found == {
        "one": (Role.INPUT, Form.ONE, True),
        "several": (Role.INPUT, Form.MANY, True),
        "named": (Role.INPUT, Form.NAMED, True),
        "grouped": (Role.INPUT, Form.GROUPED, True),
        "split": (Role.VALUE, Form.ONE, True),
        "settings": (Role.SETTINGS, Form.ONE, True),
        "report": (Role.GIVEN, Form.ONE, True),
        "code": (Role.GIVEN, Form.ONE, True),
        "model": (Role.OUTPUT, Form.ONE, True),
        "store": (Role.VALUE, Form.ONE, False),
        "maybe": (Role.INPUT, Form.ONE, False),
    }
    assert toy.summary == "Do what toys do."
    assert toy.parameters["one"].help == "A file of words"
    assert toy.parameters["split"].help == "the split"
    assert toy.settings is Settings


def test_the_files_of_a_value() -> None:
    model = toy.parameters["model"]
    assert model.paths(Path("m")) == [Path("m/weights"), Path("m/card")]
    assert toy.parameters["maybe"].paths(None) == []
    a, b = Path("a"), Path("b")
    assert toy.parameters["grouped"].paths({"x": [a, b]}) == [a, b]


def test_what_decides_the_result() -> None:
    values = Settings().canonical()
    assert toy.result_settings(values) == {"training": {"rate": 0.1}}
    assert values == {"training": {"rate": 0.1, "device": "cpu"}}


def test_a_type_that_means_nothing_is_refused() -> None:
    @stage()
    def wrong(path: Path) -> None:
        """Wrong."""

    with pytest.raises(TypeError, match="cannot have a parameter of type"):
        _ = wrong.parameters


@pytest.mark.parametrize("found", STAGES, ids=lambda found: found.name)
def test_every_stage_is_declared_soundly(found: Stage) -> None:
    assert found.summary.endswith("."), "the first sentence of the docstring says what it does"
    for parameter in found.parameters.values():
        if parameter.role in (Role.INPUT, Role.OUTPUT, Role.VALUE):
            assert parameter.help, f"{parameter.name} has no help"
    settings = {} if found.settings is None else _keys(found.settings)
    for key in found.execution_only:
        assert key in found.parameters or _leads_somewhere(settings, key.split(".")), f"{key} is no setting"


def test_the_page_of_the_docs_is_that_of_the_declarations() -> None:
    page = (DOCS / "stages.md").read_text(encoding="utf-8")
    assert page == stages_page(), "make pages"


def _keys(model: type[Section]) -> dict[str, object]:
    return {name: field.annotation for name, field in model.model_fields.items()}


def _leads_somewhere(fields: dict[str, object], key: list[str]) -> bool:
    if key[0] not in fields:
        return False
    if len(key) == 1:
        return True
    return any(
        issubclass(section, Section) and _leads_somewhere(_keys(section), key[1:])
        for section in get_args(fields[key[0]]) or [fields[key[0]]]
        if isinstance(section, type)
    )


def test_a_command_of_thousands_of_files_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [f"results/a/metrics/seed{number}/metrics.json" for number in range(3000)]
    rule = RuleStage(find_stage("summary"), ExperimentConfig(experiment="a"), Path("results"))
    outputs = {"summary": ["results/a/summary.csv"], "table": ["results/a/tables/scores.md"]}
    command = rule.command(SimpleNamespace(), {"metrics": files}, outputs)
    assert len(command) < 200
    assert subprocess.run(["sh", "-c", f"echo {command} > said"], check=True).returncode == 0
    words = _from_file(shlex.split(command)[5:])
    assert [word for word in words if word.endswith("metrics.json")] == files
    assert len(rule.command(SimpleNamespace(), {"metrics": files[:2]}, outputs).split()) > 10
