"""``vitcapr config``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from vitcapr.config.experiment import ExperimentConfig

REPOSITORY = Path(__file__).parents[2]


def config(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "VITCAPR_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "vitcapr", "config", *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def write(path: Path, **values: object) -> str:
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return str(path)


def test_the_default_is_sound() -> None:
    done = config("check")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("demo: scenes, 1 backbone(s)")


def test_show_is_complete_and_reads_back_as_the_same() -> None:
    shown = yaml.safe_load(config("show").stdout)
    assert ExperimentConfig.model_validate(shown).canonical() == shown


def test_a_file_is_merged_over_the_default(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", experiment="mine", text={"vocabulary": {"min_count": 2}})
    shown = yaml.safe_load(config("show", "--configfile", file).stdout)
    assert shown["experiment"] == "mine"
    assert shown["text"]["vocabulary"]["min_count"] == 2
    assert shown["text"]["vocabulary"]["threshold"] == "inclusive"


def test_a_misspelt_key_is_one_line_with_the_right_one(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", text={"vocabulary": {"min_cuont": 2}})
    done = config("check", "--configfile", file)
    assert done.returncode == 2
    assert "did you mean 'text.vocabulary.min_count'?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_photographs_are_one_line(tmp_path: Path) -> None:
    section = {"images": "nowhere", "text": "nowhere"}
    file = write(
        tmp_path / "mine.yaml", data={"dataset": "flickr8k", "flickr8k": section}, backbones={"vit": {"source": "x"}}
    )
    done = config("check", "--configfile", file)
    assert done.returncode == 2
    assert done.stderr.startswith("error: data.flickr8k.images: no such file or folder (nowhere);")


def test_a_backbone_is_trained_only_where_objects_are_known(tmp_path: Path) -> None:
    section = {"images": str(tmp_path), "text": str(tmp_path)}
    file = write(tmp_path / "mine.yaml", data={"dataset": "flickr8k", "flickr8k": section})
    done = config("check", "--configfile", file)
    assert done.returncode == 2
    assert "backbones.vit is to be trained here" in done.stderr


def test_the_committed_page_of_keys_is_the_codes() -> None:
    """Make it again with: vitcapr config parameters --output config/README.md"""
    page = config("parameters").stdout
    assert (REPOSITORY / "config" / "README.md").read_text(encoding="utf-8") == page
    assert "| `beam_size` | whole number ≥ 1 | `5` |" in page


def test_the_committed_schema_is_the_codes() -> None:
    """Make it again with: vitcapr config schema --output workflow/schemas/config.schema.json"""
    committed = REPOSITORY / "workflow" / "schemas" / "config.schema.json"
    assert committed.read_text(encoding="utf-8") == config("schema").stdout
    assert json.loads(committed.read_text(encoding="utf-8"))["additionalProperties"] is False
