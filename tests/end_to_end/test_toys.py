"""What the toys leave: every rule has run, the first pages, the explorer, the table of scores, the records.

All rules run, so that no command of a rule is tried for the first time by a user.
"""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Snakemake
from tests.extensions.papers.maps import WITHOUT_GPU, drawn
from tests.forks import Forks
from vitcapr.experiment.paths import gpu_exists
from vitcapr.pipeline.run_records import read_run, record_of_log

pytestmark = pytest.mark.timeout(1800)

SECTIONS = {
    "tiny": {"result", "scores", "paper", "captions", "retrieval", "training", "cost", "again"},
    "towers": {"result", "scores", "paper", "captions", "retrieval", "training", "cost", "again", "alignment-few"}
    | {"audit-own"},
    "pairs": {"result", "scores", "paper", "retrieval", "training", "cost", "again"},
}
TOYS = sorted(file.stem for file in (Path(__file__).parent / "toys").glob("*.yaml"))
TARGETS = {"all", "features", "captioners", "captions", "retrievers", "metrics", "figures"}
UNUSED = {"cpu_job", "gpu_job"} | (set() if gpu_exists() else {"draw_gpu"})
"""Templates of other rules, and the figure of GPU use on a machine without one."""


def executed(project: Path) -> set[str]:
    """The rules of the jobs that Snakemake has recorded."""
    records = (project / ".snakemake" / "metadata").rglob("*")
    return {json.loads(path.read_text(encoding="utf-8"))["rule"] for path in records if path.is_file()}


def test_the_toys_run_every_rule(toys: Path, snakemake: Snakemake) -> None:
    """Snakemake lists the same rules for every experiment."""
    done = snakemake(toys, "--list-rules")
    assert done.returncode == 0, done.stdout
    rules = {line for line in done.stdout.splitlines() if line.isidentifier()}
    assert "data" in rules
    assert executed(toys) == rules - TARGETS - UNUSED


def test_every_file_that_a_stage_opens_counts(toys: Path) -> None:
    """A file without a digest in the record of the job could change and nothing would run again: what a stage opens is
    an input, a file of the user, code, or sealed by an input, as pictures by a manifest and chunks by a store."""
    results = toys / "results"
    sealed = [toys / "stores", results / "stores", *(results / name / "data" for name in TOYS)]
    kept = [toys / ".snakemake", results / "result_cache", *(results / name / "runs" for name in TOYS)]
    uncounted = set()
    for notes in (toys / "opened").iterdir():
        noted = json.loads(notes.read_text(encoding="utf-8"))
        arguments = noted["arguments"]
        run = read_run(record_of_log(toys / arguments[arguments.index("--log") + 1]))
        users = [toys / name for name in ("vit", "bert", "clip", "llama", "vectors.txt")] if run.files else []
        if run.stage == "decode":
            users = [toys / "llama"]  # The card of the captioner has its digest, and it is compared.
        known = {toys / path for path in (*run.inputs, *run.outputs)} | {results / "summary.csv"}
        for path in map(Path, noted["opened"]):
            others = (
                path in known or any(map(path.is_relative_to, [*sealed, *kept, *users])) or "checkpoint" in path.parts
            )
            # README.md has the licence of a checkpoint, which changes no feature; a hidden file is a cache or a lock.
            # A history grows with every run, and changes no score.
            if (
                path.is_relative_to(toys)
                and path.is_file()
                and not others
                and path.name not in ("README.md", "history.jsonl")
                and path.name[0] != "."
            ):
                uncounted.add((run.stage, path.relative_to(toys).as_posix()))
    assert not uncounted


@pytest.mark.parametrize(
    ("experiment", "paper", "without"),
    [
        ("tiny", "vitcap-r", {"figures 7 and 8", *WITHOUT_GPU}),  # The toy stores attention of the beam alone.
        ("towers", "blip2-flickr30k", set()),
        ("pairs", "bert-vit", set()),
    ],
)
def test_the_toys_have_the_figures_and_tables_of_the_papers(
    toys: Path, experiment: str, paper: str, without: set[str]
) -> None:
    missing = {part.name for part in drawn(paper) if not part.is_in(toys / "results" / experiment)}
    assert missing == without


@pytest.mark.parametrize("experiment", TOYS)
def test_nothing_is_left_to_do(toys: Path, snakemake: Snakemake, experiment: str) -> None:
    again = snakemake(toys, "--dry-run", experiment=experiment)
    assert again.returncode == 0, again.stdout
    assert "Nothing to be done" in again.stdout


@pytest.mark.parametrize("experiment", SECTIONS)
def test_the_page_of_each_toy(toys: Path, experiment: str) -> None:
    path = toys / "results" / experiment / "index.html"
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    assert set(re.findall(r'<section [^>]*id="([^"]*)"', text)) == SECTIONS[experiment]
    pictures = re.findall(r"<img [^>]*>", text)
    assert pictures
    assert all(re.search('alt="[^"]', picture) and 'src="data:image/' in picture for picture in pictures)
    addresses = re.findall('(?:href|src)="([^"]*)"', text)
    files = [address for address in addresses if not address.startswith(("data:", "#"))]
    later = ("report.html", "explorer/index.html")
    assert not [file for file in files if file not in later and not (path.parent / file).exists()]
    assert not re.search(r"https?://|url\(|@import|<script", text.partition("<body>")[0])
    assert f"snakemake --cores all --configfile {experiment}.yaml" in text
    assert " wrote this page." in text


def test_captions_before_and_after_reranking(toys: Path) -> None:
    text = (toys / "results/tiny/index.html").read_text(encoding="utf-8")
    for system in ("attention, greedy", "attention, beam", "attention, reranked", "attention, oracle"):
        assert text.count(f"<dt>{system}</dt>") == 8  # the toy has eight test images
    assert "Reranking changed a caption of" in text


def test_the_same_results_give_the_same_page(project: Path, forks: Forks) -> None:
    path = project / "results/tiny/index.html"
    before = path.read_bytes()
    command = json.loads((project / "results/tiny/runs/first_page.json").read_text(encoding="utf-8"))["command"]
    path.unlink()
    again = forks.run(*shlex.split(command)[1:], folder=project)
    assert again.returncode == 0, again.stderr
    assert path.read_bytes() == before


def test_the_explorer_of_a_toy(project: Path, forks: Forks) -> None:
    done = forks.run("-m", "vitcapr", "explore", "results/tiny", "--output", "explored", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("explored/index.html: 8 images, ")
    script = (project / "explored/data/overview.js").read_text(encoding="utf-8")
    overview = json.loads(re.fullmatch(r'explorer\.receive\("overview",(.*)\);\n', script)[1])  # type: ignore[index]
    systems = [system["name"] for system in overview["systems"]]
    assert systems == [f"attention, {way}" for way in ("greedy", "beam", "reranked", "oracle")]
    assert [space["written"] for space in overview["spaces"]] == [systems]
    names = {column["name"] for column in overview["columns"]}
    assert names >= {f"{system}:rank@recommended" for system in systems}
    assert names >= {"attention, reranked:changed", "attention, beam:wrong_claims", "recommended:i2t"}
    details = (project / "explored/data/details-1-0.js").read_text(encoding="utf-8")
    assert '"grid":[4,4]' in details


def test_the_summary_is_tidy(project: Path) -> None:
    with (project / "results/tiny/summary.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = ["experiment", "dataset", "split", "model", "decoding", "metric", "value", "low", "high", "n", "protocol"]
    assert list(rows[0]) == columns
    assert {(row["model"], row["decoding"]) for row in rows} == {
        *(("attention", way) for way in ("greedy", "beam", "reranked", "oracle")),
        ("recommended", ""),
    }
    metrics = {row["metric"] for row in rows if (row["model"], row["decoding"]) == ("attention", "beam")}
    assert {"bleu_1", "bleu_4", "meteor", "rouge_l", "cider", "grounding", "pointing_game"} <= metrics
    found = {row["metric"] for row in rows if row["model"] == "recommended"}
    assert {f"{way}_{score}" for way in ("i2t", "t2i") for score in ("recall_1", "median_rank", "map_r")} <= found
    assert "rsum" in found
    with (project / "results/summary.csv").open(newline="") as stream:
        assert [row for row in csv.DictReader(stream) if row["experiment"] == "tiny"] == rows


def test_every_job_leaves_a_record(project: Path) -> None:
    root = project / "results/tiny"
    logs = {path.relative_to(root / "logs").with_suffix("") for path in (root / "logs").rglob("*.log")}
    records = {path.relative_to(root / "runs").with_suffix("") for path in (root / "runs").rglob("*.json")}
    assert records == logs
    record = json.loads((root / "runs/train_captioner/attention.json").read_text())
    assert "results/tiny/features/vit/manifest.json" in record["inputs"]
    assert "results/tiny/captioners/attention/best.safetensors" in record["outputs"]
    assert (project / "results/result_cache" / record["result_cache"]["key"] / "entry.json").exists()
