"""The DAG itself: its style, its errors, what its jobs ask for, and how they are submitted."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grimp
import yaml

from tests.experiment.conftest import rules_of
from tests.plans.dry_runs import commands, options_of

REPOSITORY = Path(__file__).parents[2]


def test_a_wrong_configuration_is_one_line_with_its_file_before_anything_runs(fresh: Any) -> None:
    (fresh.root / "typo.yaml").write_text("experiment: x\ncaptionrs: {}\n", encoding="utf-8")
    done = fresh.command("--dry-run", "--quiet", "all", "--configfile", "typo.yaml")
    assert done.returncode != 0
    (line,) = (one for one in done.stderr.splitlines() if not one.startswith("Using workflow specific profile"))
    assert line.startswith("error: unknown configuration key 'captionrs' (typo.yaml); did you mean 'captioners'?")


def test_every_job_logs_and_says_what_it_needs(fresh: Any) -> None:
    jobs = fresh.dry_run()
    assert jobs
    for job in jobs:
        (log,) = job.log
        assert re.fullmatch(r"results/demo/logs/\S+\.log", log), job.name
        assert {"mem_mb", "runtime"} <= job.resources.keys(), job.name
        on_gpu = job.rule_name in ("extract", "train_captioner", "decode", "train_backbone")
        assert job.resources.get("gpu") == "1" or not on_gpu
    written = [job.output[0] for job in jobs]
    # The scores of captions share a folder, and so do the figures of words and of caption lengths, the first page and
    # the summary, and the data set and its description.
    shared = ("/grounding.json", "/claims.json", "/figures/text/lengths.png", "/index.html")
    folders = [path.rpartition("/")[0] for path in written if not path.endswith(shared)]
    assert len(folders) == len(set(folders)), "one output folder a job"


def test_tasks_share_an_extraction_and_a_cpu_needs_no_gpu(fresh: Any) -> None:
    values = {"device": "cpu", "features": {"tasks": 3}, "captioners": {"attention": {"backbone": "vit"}}}
    tasks = [job for job in fresh.plan(values, "--", "features") if job.rule_name == "extract"]
    options = options_of(tasks, "extract")
    assert sorted((each["task"], each["tasks"]) for each in options) == [("0", 3), ("1", 3), ("2", 3)]
    assert {job.resources["gpu"] for job in tasks} == {"0"}


def test_alignments_alone_train_no_model(fresh: Any) -> None:
    values = {
        "backbones": {"vit": {"source": "nowhere"}},
        "text_encoders": {"bert": {"source": "nowhere"}},
        "alignments": {"few": {"image": "vit", "text": "bert"}},
    }
    rules = rules_of(fresh.plan(values))
    assert {"extract", "extract_text", "align", "draw_alignment", "summary", "first_page"} <= rules
    assert not rules & {"train_captioner", "train_retriever", "decode", "embed", "draw_gpu", "draw_curves"}


def test_the_default_profile_takes_nothing_from_slurm() -> None:
    default = yaml.safe_load((REPOSITORY / "profiles/default/profile.yaml").read_text(encoding="utf-8"))
    slurm = yaml.safe_load((REPOSITORY / "slurm/profile.yaml").read_text(encoding="utf-8"))
    assert set(default) <= {"rerun-incomplete", "show-failed-logs", "logger"}
    assert all(slurm[key] == default[key] for key in set(default) & set(slurm))


def test_a_fixed_weight_is_not_tuned(fresh: Any) -> None:
    """ViTCap-R reorders by the similarity alone: the validation split is not even captioned."""
    values = {
        "captioners": {"attention": {"backbone": "vit"}},
        "retrievers": {"pair": {"backbone": "vit"}},
        "rerankings": {"reranked": {"decoding": "beam", "retriever": "pair", "weight": 1.0}},
    }
    plan = fresh.plan(values)
    assert "tune_reranking" not in rules_of(plan)
    (rerank,) = options_of(plan, "rerank")
    assert "weight" not in rerank
    assert "captions/attention/beam/validation" not in commands(plan)


RULES = [REPOSITORY / "Snakefile", *(REPOSITORY / "rules").glob("*.smk"), *(REPOSITORY / "vitcapr").rglob("rules.smk")]


def test_rules_run_only_the_quoted_commands_of_stages() -> None:
    text = "\n".join(file.read_text() for file in RULES)
    commands = re.findall(r"^\s+shell:\s+(.*)$", text, flags=re.MULTILINE)
    assert set(commands) == {'"{params.command} --log {log:q}"'}
    assert not re.search(r"^\s+(run|script|notebook|wrapper):", text, flags=re.MULTILINE)


BLOCKER = """\
import pkgutil
import sys

found = pkgutil.iter_modules
pkgutil.iter_modules = lambda *given: [one for one in found(*given) if "_plugin_" not in one.name]


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is not in an environment of Snakemake alone", name=name)


sys.meta_path.insert(0, Refuse())
"""


SNAKEMAKES = {
    *("jinja2", "psutil", "pydantic", "pydantic_core", "snakemake"),
    *("snakemake_interface_logger_plugins", "typing_extensions", "yaml"),
}
"""The libraries of vitcapr that Snakemake brings."""


def test_lint_needs_nothing_but_snakemake(tmp_path: Path) -> None:
    graph = grimp.build_graph("vitcapr", include_external_packages=True, cache_dir=None)
    blocked = {name for name in graph.modules if "." not in name} - sys.stdlib_module_names - {"vitcapr"} - SNAKEMAKES
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(names=blocked), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            "--lint",
            "--snakefile",
            "workflow/Snakefile",
            "--workflow-profile",
            "none",
        ],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "in a good condition" in done.stderr + done.stdout
