"""What ``snakemake --profile slurm`` plans for each job. On a real Slurm, ``test_cluster.py`` looks at what it got."""

import re

import pytest
import yaml

from tests.checkouts import REPOSITORY, copy_checkout
from tests.forks import planning_forks
from tests.plans.dry_runs import DryJob, dry_run
from vitcapr.experiment.experiment import Experiment

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


def test_gpu_use_is_planned_where_jobs_have_gpus(jobs: dict[str, DryJob], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a login node, which has none; not on such a machine itself, nor with device: cpu."""
    assert "draw_gpu" in jobs
    monkeypatch.setattr("vitcapr.pipeline.paths._GPUS", ())
    on_cpu = {**CONFIG, "device": "cpu"}
    for values, on_cluster, planned in ((CONFIG, True, True), (CONFIG, False, False), (on_cpu, True, False)):
        experiment = Experiment.from_config({"experiment": "mine"} | dict(values), on_cluster=on_cluster)
        (figure,) = (each for each in experiment.figure_rules if each.stage.name == "draw_gpu")
        assert bool(figure.targets) == planned, (values, on_cluster)


def gpu_rules() -> set[str]:
    """The rules that may ask for a GPU; one that another rule is made from has the same needs."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "rules").glob("*.smk"))
    rules = re.findall(r"^use rule (\w+) as (\w+) with:\n((?: +.*\n|\n)*)", text, re.MULTILINE)
    asking = {name for _, name, body in rules if re.search(r"^        (?:gpu=|.*\.on_gpu\()", body, re.MULTILINE)}
    return asking | {name for parent, name, _ in rules if parent in asking}


def test_the_profile_knows_every_gpu_rule() -> None:
    rules = gpu_rules()
    assert {"train_backbone", "extract", "train_captioner", "decode", "decode_attentively", "embed"} <= rules
    assert set(PROFILE["set-resources"]) == rules
