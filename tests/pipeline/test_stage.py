"""What a signature declares, and that every stage's declaration is sound."""

import json
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, get_args

import pytest

from vitcapr.commands.stage import parser, read_job, stages_page
from vitcapr.config.base import Section, StageSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.experiment.rule import RuleStage, in_report
from vitcapr.pipeline.stage import CodeHash, In, Out, Role, Stage, each_stage, find_stage, stage
from vitcapr.progress import Reporter

STAGES = list(each_stage())
DOCS = Path(__file__).parents[2] / "docs"


Words = Annotated[Path, "A file of words"]
Model = Annotated[Path, "A folder of weights", ("weights", "card")]


class Inner(Section):
    rate: float = 0.1
    seed: int = 0


class Settings(StageSettings):
    training: Inner = Inner()


@stage(cached=True, execution_only={"store", "training.seed"})
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
    found = {name: (p.role, p.holds, p.required) for name, p in toy.parameters.items()}
    assert found == {
        "one": (Role.INPUT, None, True),
        "several": (Role.INPUT, list, True),
        "named": (Role.INPUT, dict, True),
        "grouped": (Role.INPUT, dict, True),
        "split": (Role.VALUE, None, True),
        "settings": (Role.SETTINGS, None, True),
        "report": (Role.GIVEN, None, True),
        "code": (Role.GIVEN, None, True),
        "model": (Role.OUTPUT, None, True),
        "store": (Role.VALUE, None, False),
        "maybe": (Role.INPUT, None, False),
    }
    assert toy.summary == "Do what toys do."
    assert toy.parameters["one"].help == "A file of words"
    assert toy.parameters["split"].help == "the split"
    assert toy.settings is Settings


def test_what_decides_the_result() -> None:
    values = Settings().canonical()
    assert toy.result_settings(values) == {"training": {"rate": 0.1}}
    assert values == {"training": {"rate": 0.1, "seed": 0}}


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


JOB = {
    "one": "a",
    "several": ["a", "b"],
    "named": {"x": "a"},
    "grouped": {"x": ["a", "b"]},
    "split": "test",
    "model": "m",
}


def test_a_job_gives_every_value(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    for text in (json.dumps(JOB), str(tmp_path / "job.json")):
        values = toy.read(read_job(text))
        assert values["grouped"] == {"x": [Path("a"), Path("b")]}
        assert (values["store"], values["maybe"], values["settings"]) == ("here", None, Settings())
    assert toy.read({**JOB, "settings": {"training": {"rate": 1}}})["settings"].training.rate == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"oen": "a"}, "'oen' .vitcapr stage test_stage.; did you mean 'one'?"),
        ({"one": None}, "'one': it must be given"),
        ({"several": "a"}, "'several': it must be a list"),
        ({"named": {"x": ["a"]}}, "'named.x': Input is not a valid path"),
        ({"settings": {"training": {"rat": 1}}}, "did you mean 'rate'"),
        ({"settings": {"training": {"rate": float("inf")}}}, "finite number"),
    ],
)
def test_a_mistake_in_a_job(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        toy.read({**JOB, **change})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON object"),
        ('{"a": ' * 100_000, "not a JSON object"),
        ("[1]", r"no such file \(\[1\]\)"),
        ("nowhere.json", r"no such file \(nowhere.json\)"),
    ],
)
def test_a_job_that_is_no_json(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_job(text)


@pytest.mark.parametrize("words", [["--oen", "a"], ["--job"], [], ["one"]])
def test_a_mistake_in_words(words: list[str]) -> None:
    with pytest.raises(UserError, match=r"\(vitcapr stage test_stage\); vitcapr stage test_stage --help lists"):
        parser(toy).parse_args(words)


def test_a_job_of_thousands_of_files_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [f"results/a/metrics/seed{number}/metrics.json" for number in range(3000)]
    rule = RuleStage(find_stage("summary"), ExperimentConfig(experiment="a"), Path("results"))
    outputs = {"summary": ["results/a/summary.csv"], "table": ["results/a/tables/scores.md"]}
    for metrics, short in ((files, True), (files[:2], False)):
        command = rule.command(SimpleNamespace(experiment="a"), {"metrics": metrics}, outputs)
        assert (len(command) < 200) is short
        assert subprocess.run(["sh", "-c", f"echo {command} > said"], check=True).returncode == 0
        assert read_job(shlex.split(command)[-1])["metrics"] == metrics


def test_the_report_shows_tables_in_html_beside_those_in_markdown() -> None:
    table, shown = in_report("results/{experiment}/tables/scores.md", "scores.rst", "Scores", table="scores")
    assert [table, str(shown)] == [f"results/{{experiment}}/tables/scores.{ending}" for ending in ("md", "html")]
    assert not hasattr(table, "flags")
    assert shown.flags["report"].caption == "scores.rst"
    assert in_report("results/{experiment}/summary.csv", "summary.rst", "Scores").flags["report"].category == "Scores"
