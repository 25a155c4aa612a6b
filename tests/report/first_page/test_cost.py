from pathlib import Path

from tests.run_records import RECORD
from vitcapr.files import write_json
from vitcapr.pipeline.records import read_runs
from vitcapr.progress import format_seconds
from vitcapr.report.first_page.cost import cost, cost_table


def record(folder, name, inputs, outputs, seconds=1.0, restored=None):
    """A run record, as a job of the experiment x writes it."""

    def described(places):
        return {f"results/x/{place}": {"option": "o", "sha256": "0" * 64, "size": 1} for place in places}

    measured = {"seconds": seconds, "cpu_seconds": 2 * seconds, "peak_memory_mb": int(1000 * seconds)}
    made = {**RECORD["made"], **measured, "platform": "Linux"}
    files = {"inputs": described(inputs), "outputs": described(outputs), "made": made}
    job = {"stage": name.partition("/")[0], "result_cache": {"key": "k", "restored": restored}}
    write_json(folder / f"runs/{name}.json", {**RECORD, **files, **job})


def test_the_jobs_behind_the_page_and_no_others(tmp_path):
    folder = tmp_path / "results/x"
    record(folder, "data", [], ["data/manifest.json"], seconds=1.5)
    record(folder, "train/a", ["data/manifest.json"], ["a.bin"], seconds=3600)
    record(folder, "train/b", ["data/manifest.json"], ["b.bin"], seconds=1800, restored="2026-01-02")
    record(folder, "train/unused", ["data/manifest.json"], ["c.bin"], seconds=99999)
    record(folder, "score", ["a.bin", "b.bin"], ["summary.csv"])
    found = cost(folder / "index.html", [folder / "summary.csv", Path("/elsewhere/file")])
    assert found is not None
    table, note = found
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["train", "2", "1:30:00", "3:00:00", "3600.0 GB"],
        ["data", "1", "0:01", "0:03", "1.5 GB"],
        ["score", "1", "0:01", "0:02", "1.0 GB"],
        ["all", "4", "1:30:02", "3:00:05", "3600.0 GB"],
    ]
    assert "Measured 2026-01-01 on Linux." in note
    assert "1 of 4 jobs were restored" in note


def test_the_cheap_stages_share_a_row(tmp_path):
    for number in range(11):
        record(tmp_path, f"s{number:02d}", [], [f"{number}"], seconds=float(100 - number))
    table = cost_table(read_runs(tmp_path))
    rows = table.rows
    assert [row[0].text for row in rows[-3:]] == ["s07", "3 other stages", "all"]
    assert rows[-2][2].text == format_seconds(92 + 91 + 90)
