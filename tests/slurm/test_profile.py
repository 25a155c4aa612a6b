"""What ``snakemake --profile slurm`` plans for each job. On a real Slurm, ``test_cluster.py`` looks at what it got."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.checkouts import REPOSITORY, copy_checkout
from tests.forks import planning_forks
from tests.plans.dry_runs import DryJob, dry_run
from vitcapr.commands.estimate import refusals
from vitcapr.experiment.experiment import Experiment
from vitcapr.experiment.rule import growing

PROFILE = yaml.safe_load((REPOSITORY / "profiles/slurm/profile.yaml").read_text(encoding="utf-8"))
CONFIG = {
    "experiment": "mine",
    "captioners": {
        "several": {"backbone": "vit", "training": {"processes": 4}},
        "baseline": {"backbone": "vit", "architecture": "baseline"},
    },
    "retrievers": {"pair": {"backbone": "vit", "text": {"kind": "features", "encoder": "sentences"}}},
    "text_encoders": {"sentences": {"source": "nowhere/sentences"}},
    "rerankings": {"reranked": {"decoding": "beam", "retriever": "pair"}},
    "run": {"captioners": ["several", "baseline"], "retrievers": ["pair"]},
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DryJob]:
    """Every job of the whole DAG, by its name."""
    folder = tmp_path_factory.mktemp("slurm")
    copy_checkout(folder)
    (folder / "mine.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    plan = dry_run(folder, "--cores=64", "--profile", "slurm", "--configfile", "mine.yaml", forks=planning_forks)
    return {job.name: job for job in plan}


def test_every_job_has_the_partition_of_its_rule_and_the_threads_of_the_profile(
    jobs: dict[str, DryJob],
) -> None:
    rules = {job.rule_name for job in jobs.values()}
    assert rules >= {"data", "extract", "extract_text", "train_captioner", "decode", "rerank", "embed", "score"}
    for name, job in jobs.items():
        on_gpu = job.rule_name in PROFILE["set-resources"]
        assert job.resources["slurm_partition"] == ("gpu-l40s" if on_gpu else "cpu"), name
        assert on_gpu or job.resources.get("gpu", "0") == "0", name
        assert job.resources["nodes"] == "1", name
        assert {"mem_mb", "runtime"} <= job.resources.keys(), name
        assert job.threads == PROFILE["set-threads"].get(job.rule_name, job.threads), name


def test_the_papers_allocation(jobs: dict[str, DryJob]) -> None:
    """ViTCap-R: -G 1 -c 32 -p gpu-l40s -N 1."""
    for job in (jobs["extract vit/0"], jobs["train_retriever pair"]):
        assert job.resources.items() >= {"slurm_partition": "gpu-l40s", "nodes": "1", "gpu": "1"}.items()
        assert job.threads == 32


def test_a_training_requests_a_gpu_per_process_and_a_warning_signal(jobs: dict[str, DryJob]) -> None:
    several = jobs["train_captioner several"].resources
    assert (several["gpu"], several["slurm_extra"]) == ("4", "--signal=USR1@300")
    assert jobs["train_captioner baseline"].resources["gpu"] == "1"


def test_gpu_use_is_planned_where_jobs_have_gpus(
    jobs: dict[str, DryJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a login node, which has none; not on such a machine itself, nor with device: cpu."""
    assert "draw_gpu" in jobs
    monkeypatch.setattr("vitcapr.experiment.paths._GPUS", ())
    monkeypatch.chdir(tmp_path)
    on_cpu = {**CONFIG, "device": "cpu"}
    for values, on_cluster, planned in ((CONFIG, True, True), (CONFIG, False, False), (on_cpu, True, False)):
        experiment = Experiment.from_config({"experiment": "mine"} | dict(values), on_cluster=on_cluster)
        assert ("results/mine/figures/gpu/gpu.png" in experiment.targets.figures) == planned, (values, on_cluster)
    use = tmp_path / "results/mine/captioners/several/gpu.csv"
    use.parent.mkdir(parents=True)
    use.write_text("# a GPU\nseconds,gpu_percent\n0.0,50\n")
    experiment = Experiment.from_config({"experiment": "mine"} | CONFIG)  # As vitcapr gc and status read it.
    assert "results/mine/figures/gpu/gpu.png" in experiment.targets.figures


def test_no_job_of_an_experiment_on_cpus_asks_for_a_gpu(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**CONFIG, "device": "cpu"}), encoding="utf-8")
    plan = dry_run(tmp_path, "--cores=64", "--profile", "slurm", "--configfile", "mine.yaml", forks=planning_forks)
    assert {(job.resources["slurm_partition"], job.resources.get("gpu", "0")) for job in plan} == {("cpu", "0")}


def test_memory_and_time_grow_with_the_attempts() -> None:
    needs = growing(runtime=600, mem_mb=8000)
    attempts = [(needs["mem_mb"]({}, attempt), needs["runtime"]({}, attempt)) for attempt in (1, 2, 3)]
    assert attempts == [(8000, 600), (16000, 1200), (24000, 1440)]
    assert growing(runtime=2000)["runtime"]({}, 3) == 2000


def gpu_rules() -> set[str]:
    """The rules that may ask for a GPU; one that another rule is made from has the same needs."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [*REPOSITORY.glob("rules/*.smk"), *REPOSITORY.glob("vitcapr/extensions/*/rules.smk")]
    )
    rules = re.findall(r"^use rule (\w+) as (\w+) with:\n((?: +.*\n|\n)*)", text, re.MULTILINE)
    asking = {name for _, name, body in rules if re.search(r"^        (?:gpu=|.*\.on_gpu\()", body, re.MULTILINE)}
    return asking | {name for parent, name, _ in rules if parent in asking}


def test_the_profile_knows_every_gpu_rule() -> None:
    rules = gpu_rules()
    assert {"train_backbone", "extract", "train_captioner", "decode", "decode_attentively", "embed"} <= rules
    assert set(PROFILE["set-resources"]) == rules


@pytest.mark.parametrize(
    ("refusal", "tries", "code"),
    [
        ("sbatch: error: AssocMaxSubmitJobLimit", 3, 0),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit", 3, 0),
        ("sbatch: error: invalid partition specified: gpu", 1, 1),
    ],
)
def test_a_job_over_the_limit_of_submitted_jobs_waits(tmp_path: Path, refusal: str, tries: int, code: int) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/tries\n"
        f'[ "$(wc -l < {tmp_path}/tries)" -gt 2 ] || {{ echo "{refusal}" >&2; exit 1; }}\necho "7 $*"\n'
    )
    sbatch.chmod(0o755)
    ours = REPOSITORY / "profiles/slurm/bin"
    path = os.pathsep.join([str(ours), str(tmp_path), os.environ["MACHINE_PATH"]])
    environment = {"PATH": path, "VITCAPR_SUBMIT_SECONDS": "0.01"}
    done = subprocess.run(
        ["sbatch", "--parsable", "--wrap=a 'b c'"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "" if code else "7 --parsable --wrap=a 'b c'\n")
    assert len((tmp_path / "tries").read_text().split()) == tries
    assert code == 0 or done.stderr == f"{refusal}\n"


def test_what_slurm_would_refuse_is_said_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {
        "sinfo": "echo cpu; echo gpu-l40s",
        "sacctmgr": "echo ours",
        "sbatch": f'echo "$@" >> {tmp_path}/asked; case "$*" in *gpus=4*) echo "no node has 4 GPUs" >&2; exit 1;; esac',
    }
    for name, lines in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['MACHINE_PATH']}")
    need = {"threads": 8, "mem_mb": 8000, "runtime": 60}
    needs = {
        "data": need,
        "extract": need | {"gpu": 1},
        "embed": need | {"gpu": 0},
        "train_captioner": need | {"gpu": 4},
    }
    (refused,) = refusals(PROFILE, needs, Path("profile.yaml"))
    assert str(refused).startswith("Slurm would refuse rule train_captioner: no node has 4 GPUs (profile.yaml)")
    asked = (tmp_path / "asked").read_text().splitlines()
    cpu = "--test-only --partition=cpu --nodes=1 --cpus-per-task=8 --mem=8000 --time=60"
    assert asked[:2] == [
        f"{cpu} --wrap=true",
        f"{cpu} --gpus=1 --wrap=true".replace("=cpu ", "=gpu-l40s ").replace("k=8", "k=32"),
    ]
    assert len(asked) == 3, "embed on the CPU asks for what data asks for"
    other = PROFILE | {"default-resources": {"slurm_partition": "cpu", "slurm_account": "theirs"}}
    (refused,) = refusals(other, needs, Path("profile.yaml"))
    assert (
        "rule data asks for the account 'theirs', which Slurm does not have (profile.yaml); write one of ours"
        in str(refused)
    )
