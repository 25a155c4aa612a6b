"""Every code block of the documentation is checked, without running what takes long.

Commands are parsed by the program's own command line, YAML is validated as a configuration, and Python compiles and
uses names that exist. The commands and the Python of the README and of the page of the Python API run as well, on a
small experiment (``tests/end_to_end/test_readme.py``), the notebooks (``tests/commands/test_notebook.py``) and, marked
slow, the tutorials (``tests/end_to_end/test_tutorials.py``).
"""

import ast
import importlib
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from snakemake.cli import get_argument_parser

import vitcapr
from tests.docs.blocks import BLOCK, PAGES, REPOSITORY, Block, blocks_of, commands_of
from vitcapr.commands.main import command_modules
from vitcapr.commands.stage import parser, read_job
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse, read_yaml
from vitcapr.experiment.experiment import read_merged
from vitcapr.metrics.caption_metric import TokenisedCaptions
from vitcapr.pipeline.stage import find_stage

NOT_CODE = {
    "text": "output, a folder or a formula",
    "mermaid": "a diagram",
    "{toctree}": "pages of the site",
    "{eval-rst}": "names whose docstrings the site prints",
}
"""Languages that nothing checks, and why."""
OTHER_PROGRAMS = {
    ".": "activates an environment",
    "cd": "of the shell",
    "cp": "of the system",
    "curl": "tests/commands/test_serve.py sends such a request",
    "docker": "not on the machines of the tests",
    "head": "of the system",
    "pip": "tests/experiment/test_packaged.py installs the wheel",
    "salloc": "needs a cluster; tests/training/test_distributed.py starts the same processes",
    "srun": "needs a cluster; tests/training/test_distributed.py starts the same processes",
}
"""Programs whose commands are not checked, and why."""
CHANGED_BY = {
    ("docs/bert-vit.md", 0): "experiments/bert-vit-flickr8k.yaml",
    ("docs/bert-vit.md", 1): "experiments/bert-vit-flickr8k.yaml",
    ("docs/blip2-flickr30k.md", 0): "experiments/blip2-flickr30k.yaml",
}
"""The experiment that a block of YAML changes, if it is not ``config.yaml``: page and number of the block."""
TWO_TOWERS = "{image: {backbone: vit}, text: {english: {languages: [en], source: bert}}}"
TAKEN_AS_DEFINED = {
    ("docs/grids.md", 0): "retrievers: {linear: {backbone: vit}, mlp: {backbone: vit}}\n"
    "backbones: {other: {source: other}}\n"
    f"finetuned_dual_encoders: {{fine_tuned: {TWO_TOWERS}, frozen: {TWO_TOWERS}}}",
    ("docs/tutorials/own-photographs.md", 2): "captioners: {on-vit-tiny: {backbone: vit}, on-dinov2: {backbone: vit}}",
}
"""Definitions that a block of YAML takes for granted."""
STANDS_FOR = {
    ("docs/extend.md", 0): ("kind: dcl, weight: 0.5", "kind: max_hinge, margin: 0.1"),
    ("docs/extend.md", 1): ("exact_match", "rouge_l"),
    ("docs/extend.md", 2): ("architecture: gru, layers: 2", "architecture: baseline"),
    ("docs/extend.md", 3): ("kind: means", "kind: vit"),
}
"""What a page adds, and what exists."""
BEFORE = {
    "docs/architecture.md": "from vitcapr.stages.decode import *",
}
"""What the Python of a page takes for granted."""


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of_language(*languages: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in languages], ids=str)


def test_every_block_says_its_language() -> None:
    known = {"bash", "python", "snakemake", "yaml", *NOT_CODE}
    assert [str(block) for block in BLOCKS if block.language not in known] == []
    fences = sum(len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)) for page in PAGES)
    assert fences == 2 * len(BLOCKS) > 100


@of_language("bash")
def test_commands(block: Block) -> None:
    for program, *arguments in commands_of(block):
        if program in OTHER_PROGRAMS:
            continue
        check = {"vitcapr": parse_vitcapr, "snakemake": parse_snakemake, "make": parse_make, "python": parse_python}
        assert program in check, f"{program} is neither checked nor in the list of programs that are not"
        check[program](arguments)


PROJECT = ("benchmarks", "config", "docs", "envs", "experiments", "profiles", "rules", "tests", "vitcapr", "workflow")
FILE = re.compile(
    r"(?<![\w/.*<>-])(?:[\w.*-]+/)*[\w.*-]*\w\.(?:py|md|yaml|smk|toml|txt|rst|json|csv|parquet|npz|h5)\b(?!/)"
)
OF_READERS = {
    *("captions_train2017", "full", "train", "val", "train-00000-of-00004", "words", "features", "_tiny"),
    "instances_val2017_mini",
}
"""The stems of files that a reader or another program makes."""
OF_OTHER_PROGRAMS = {
    *("--rm", "--volume", "--workdir", "--gpus", "--gres", "--signal", "--test-only", "--me", "--Format", "--no-deps"),
    *("--strict", "--constraint", "--dest", "--no-index", "--find-links", "--revision", "--local-dir", "--bind"),
    "--tag",
}
"""Options of sbatch, squeue, pip, twine, hf, docker and apptainer."""


def code_in_prose() -> Iterator[tuple[str, str]]:
    """Each page with each piece of code that stands in a line of its prose."""
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            yield page.relative_to(REPOSITORY).as_posix(), code


def options_of(name: str) -> set[str]:
    """The options of a command of ours and of its parts."""
    if name == "stage":
        return set(parser(find_stage("decode"))._option_string_actions) | {"--markdown"}
    command = typer.main.get_command(importlib.import_module(command_modules()[name]).app)
    parts = [command, *getattr(command, "commands", {}).values()]
    return {"--help"} | {name for part in parts for one in part.params for name in (*one.opts, *one.secondary_opts)}


def test_an_option_that_a_page_names_exists() -> None:
    ours = {name: options_of(name) for name in command_modules()}
    sources = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "benchmarks").glob("*.py"))
    snakemake = get_argument_parser()._option_string_actions
    every = {"--debug", *re.findall(r'"(--[a-z-]+)"', sources)}.union(OF_OTHER_PROGRAMS, snakemake, *ours.values())
    unknown = []
    for page, code in code_in_prose():
        program, command, *_ = [*code.split(), "", ""]
        known = ours.get(command, every) if program == "vitcapr" else every
        named = re.findall(r"(?<![\w-])--[a-z][\w-]*", code)
        unknown += [(page, code, option) for option in named if option not in known]
    assert unknown == []


def test_a_file_that_a_page_names_is_there_or_in_the_code() -> None:
    """A file of the project is there. The name of another stands in the code, or in a block of a page."""
    tree = [path for folder in PROJECT for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    code = [path for path in tree if path.suffix in (".py", ".smk", ".yaml") and "tests" not in path.parts]
    blocks = "\n".join(block.text for block in BLOCKS)
    written = "\n".join([blocks, *(path.read_text(encoding="utf-8") for path in code)])
    names, unknown = {path.name for path in tree}, []
    for page, text in code_in_prose():
        for file in FILE.findall(text):
            path, pattern = Path(file), file.replace("NAME", "*")
            if path.parts[0] in PROJECT and path.parts[1:]:
                known = any(REPOSITORY.glob(pattern)) or file in blocks
            else:
                known = (
                    path.name in names
                    or (REPOSITORY / file).is_file()
                    or path.stem in OF_READERS
                    or path.stem.strip("*") in written
                )
            unknown += [] if known else [(page, file)]
    assert unknown == []


def parse_vitcapr(arguments: list[str]) -> None:
    """Have the command's own parser read the arguments; the command does not run."""
    name, *rest = arguments
    assert name in command_modules(), f"no command {name}"
    if name == "stage":
        stage = find_stage(rest[0])
        job = parser(stage).parse_args(rest[1:]).job
        if job.startswith("{"):
            stage.read(read_job(job))
        return
    app = importlib.import_module(command_modules()[name]).app
    command, read = typer.main.get_command(app), []
    for each in [command, *getattr(command, "commands", {}).values()]:
        if not hasattr(each, "commands"):
            each.invoke = lambda context: read.append(context.params)  # type: ignore[method-assign]
    try:
        command.main(rest, standalone_mode=False)
    except Exception as error:
        raise AssertionError(f"vitcapr {shlex.join(arguments)}: {error}") from error
    assert len(read) == 1


def parse_snakemake(arguments: list[str]) -> None:
    given = [word for word in arguments if word != "slurm" and not word.startswith("profiles/")]
    if len(given) < len(arguments):  # The value of --profile: the profile itself is tested in tests/slurm.
        assert (REPOSITORY / next(word for word in arguments if word not in given)).is_dir()
        given.remove("--profile")
    try:
        parsed = get_argument_parser().parse_args(given)
    except SystemExit as error:
        raise AssertionError(f"snakemake {shlex.join(arguments)}") from error
    for path in parsed.configfile:
        check_experiment(str(path))


def check_experiment(path: str) -> None:
    """An experiment of the repository, or one that a page shows."""
    pages = [page for page in PAGES if "tutorials" in page.parts or page.name == "moving-stores.md"]
    shown = any(f"`{path}`" in page.read_text(encoding="utf-8") for page in pages)
    assert shown or (REPOSITORY / path).is_file(), path


def parse_make(arguments: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {word for word in arguments if "=" not in word} <= set(targets), arguments


def parse_python(arguments: list[str]) -> None:
    if arguments[1].startswith("benchmarks."):
        assert (REPOSITORY / arguments[1].replace(".", "/")).with_suffix(".py").is_file()
        return
    assert arguments[:2] == ["-m", "pytest"]
    markers = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    *options, path = arguments[2:] if (REPOSITORY / arguments[-1]).exists() else [*arguments[2:], "tests"]
    assert all(option == "-m" or f'"{option}: ' in markers for option in options), arguments
    assert (REPOSITORY / path).exists()


@of_language("yaml")
def test_a_configuration(block: Block, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a change of ``config.yaml`` or of the experiment that the page is about; or a whole experiment."""
    monkeypatch.chdir(REPOSITORY)
    place = (block.page, block.number)
    block_file, defined = tmp_path / "block.yaml", tmp_path / "defined.yaml"
    block_file.write_text(block.text.replace(*STANDS_FOR.get(place, ("", ""))), encoding="utf-8")
    defined.write_text(TAKEN_AS_DEFINED.get(place, "{}"), encoding="utf-8")
    values = read_yaml(block_file)
    if set(values) == {"training"}:  # The section of a retriever.
        block_file.write_text(yaml.safe_dump({"retrievers": {"recommended": values}}), encoding="utf-8")
    if "experiment" not in values:
        values = read_merged(Path(CHANGED_BY.get(place, "config.yaml")), defined, block_file)
    parse(ExperimentConfig, expand_grid(values, block.page), block.page)


def test_the_template_of_the_tutorial_is_the_template() -> None:
    page = REPOSITORY / "docs" / "tutorials" / "own-photographs.md"
    shown = next(block for block in blocks_of(page) if block.language == "yaml")
    assert yaml.safe_load(shown.text) == read_yaml(REPOSITORY / "experiments" / "template.yaml")


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.language == "python"}))
def test_python(page: str, tmp_path: Path) -> None:
    """Every name is defined, what it imports exists, and calls of ``vitcapr.NAME`` fit the signature."""
    shown = [block.text for block in BLOCKS if (block.page, block.language) == (page, "python")]
    whole = tmp_path / "page.py"
    whole.write_text("\n".join([BEFORE.get(page, ""), *shown]), encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F821", whole]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    tree = ast.parse("\n".join(shown), page)
    check_imports(tree)
    check_calls(tree)


def check_imports(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:  # One that begins with a dot is a file of the page.
            module = importlib.import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)


def check_calls(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("vitcapr."):
            function: Any = getattr(vitcapr, ast.unparse(node.func).removeprefix("vitcapr."))
            keywords = {str(keyword.arg): keyword.value for keyword in node.keywords}
            inspect.signature(function).bind(*node.args, **keywords)


def test_the_reference_has_every_public_name() -> None:
    page = (REPOSITORY / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert [name for name in vitcapr._HOMES if f":: vitcapr.{name}\n" not in page] == []


def test_the_stage_of_the_architecture_is_an_excerpt() -> None:
    page = REPOSITORY / "docs" / "architecture.md"
    shown = ast.parse(next(block for block in blocks_of(page) if block.language == "python").text).body[0]
    real = ast.parse((REPOSITORY / "vitcapr" / "stages" / "decode.py").read_text(encoding="utf-8"))
    found = next(node for node in real.body if isinstance(node, ast.FunctionDef) and node.name == "decode")
    assert isinstance(shown, ast.FunctionDef)
    assert annotations(shown).items() <= annotations(found).items()


def annotations(function: ast.FunctionDef) -> dict[str, str]:
    return {one.arg: ast.unparse(one.annotation) for one in function.args.args if one.annotation}


def test_what_the_pages_add_does_what_they_say(tmp_path: Path) -> None:
    metric = run_block("docs/extend.md", "METRIC")
    captions = TokenisedCaptions(["a dog", "a cat", "a man"], {"1": ["a dog", "dogs"], "2": ["cats"], "3": ["a man"]})
    assert metric.measure(captions)["exact_match"].value == pytest.approx(2 / 3)
    table = tmp_path / "captions.tsv"
    table.write_text("a.jpg\ttrain\tA dog.\nbroken\nb.jpg\ttest\tA cat.\n", encoding="utf-8")
    listing = run_block("docs/extend.md", "list_images")(None, ["a.jpg"], table=str(table))
    assert listing.images["path"].fillna("").tolist() == ["a.jpg", ""]
    assert listing.images["split"].tolist() == ["train", "test"]
    assert listing.captions["text"].tolist() == ["A dog.", "A cat."]
    assert listing.rejected == [(f"{table.name}:2", "not a line 'image<tab>split<tab>caption'")]


def run_block(page: str, name: str) -> Any:
    """What the Python block of a page that defines this name makes of it."""
    blocks = [block.text for block in blocks_of(REPOSITORY / page) if block.language == "python"]
    names: dict[str, Any] = {"__name__": "block"}
    exec(next(text for text in blocks if f"def {name}(" in text or f"\n{name} = " in text), names)
    return names[name]


def test_snakefiles() -> None:
    """snakefmt parses them as Snakemake does."""
    texts = [block.text for block in BLOCKS if block.language == "snakemake"]
    assert texts
    for text in texts:
        done = subprocess.run(
            [sys.executable, "-m", "snakefmt", "--check", "-"], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
