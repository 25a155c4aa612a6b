"""A configuration of another kind than ours ends with one line, whatever it is."""

from pathlib import Path

import pytest

from vitcapr.config.base import parse, parse_settings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.plain import check_plain
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_yaml

RATE = "captioners: {a: {backbone: vit, training: {phases: [{epochs: 1, learning_rate: %s}]}}}"
GRID = "\ngrid: [{captioners: [attention], vary: {seed: [1, 2]}}]"
ALIASES = "a: &a [1,1,1,1,1,1,1,1]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "infinite": RATE % ".inf",
    "negative infinite": RATE % "-.inf",
    "not a number": RATE % ".nan",
    "infinite in quotes": RATE % "'inf'",
    "exponent in quotes": RATE % "'1e999'",
    "400 digits": f"seed: {'9' * 400}",
    "5,000 digits": f"seed: {'9' * 5000}",
    "long text": f"experiment: {'a' * 20_000}",
    "null character": 'text: {language: "e\\0n"}',
    "escape sequence": 'data: {coco: {images: "\\e[2J"}}',
    "cycle": "data: &a {scenes: *a}",
    "deep list": f"data: {'[' * 400}{']' * 400}",
    "deeper list": f"data: {'[' * 5000}{']' * 5000}",
    "deep mapping": f"data: {'{a: ' * 2000}1{'}' * 2000}",
    "aliases of aliases": ALIASES,
    "Python object": "experiment: !!python/object/apply:os.system [ls]",
    "list": "- 1",
    "number": "5",
    "nothing": "",
    "number as key": "1: 2",
    "list as key": "? [1, 2]\n: 3",
    "date": "experiment: 2020-01-01",
    **{f"{key} is 5": f"{key}: 5" for key in ExperimentConfig.model_fields if key not in ("seed",)},
    **{f"{key} is 5, with a grid": f"{key}: 5{GRID}" for key in ("captioners", "run", "variants")},
    "lists of run": "run: {captioners: [[1]]}" + GRID,
    "list of run": "run: {captioners: 5}" + GRID,
    "variants of a kind": "variants: {captioners: 5}" + GRID,
    "base of a grid": "grid: [{captioners: [5], vary: {seed: [1]}}]",
    "grid of infinite": "grid: [{captioners: [attention], vary: {seed: [.inf]}}]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_configuration_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, expand_grid(read_yaml(file), file), file)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "utf-32"])
def test_another_encoding_is_one_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.yaml").write_bytes("experiment: é\n".encode(encoding))
    with pytest.raises(UserError, match="text in UTF-8"):
        read_yaml(tmp_path / "x.yaml")


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes("experiment: a\n".encode("utf-8-sig"))
    assert read_yaml(tmp_path / "x.yaml") == {"experiment": "a"}


def test_values_that_snakemake_has_read_are_checked_too() -> None:
    values: dict[str, object] = {}
    values["data"] = values
    with pytest.raises(UserError, match="nested deeper"):
        check_plain(values, "config.yaml")


@pytest.mark.parametrize("settings", ['{"a": ' * 100_000, '{"rate": Infinity}', '{"rate": NaN}'])
def test_settings_of_a_stage_are_bounded(settings: str) -> None:
    with pytest.raises(UserError):
        parse_settings(ExperimentConfig, settings)
