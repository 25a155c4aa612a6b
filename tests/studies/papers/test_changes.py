from pathlib import Path

import numpy as np

from tests.studies.papers.test_side_by_side import built, system
from vitcapr.formats.scores import RankFile, Ranks
from vitcapr.formats.tables import Table
from vitcapr.studies.papers.changes import hard_negatives, read_ranks
from vitcapr.studies.papers.numbers import read_published

COLUMNS_SHOWN = ("system", "I→T R@1", "I→T median rank")


def shown(table: Table) -> list[list[str]]:
    at = [table.columns.index(name) for name in COLUMNS_SHOWN]
    return [[row[i].shown for i in at] for row in table.rows]


def write_ranks(folder: Path, i2t: list[int]) -> Path:
    """Four images with one caption each."""
    ranks, rows = np.array(i2t, np.int32), np.arange(4, dtype=np.int32)
    path = folder / "test" / "ranks.npz"
    RankFile(Ranks(ranks, ranks, (1 / ranks).astype(np.float32)), rows, rows, rows).write(path)
    return path


def test_retrievers_are_set_against_their_like() -> None:
    found = built(
        system("paper", {"i2t_recall_1": 0.10, "i2t_median_rank": 20.0}),
        system("alone", {"i2t_recall_1": 0.30}),
        system("paper_hard_negatives", {"i2t_recall_1": 0.08, "i2t_median_rank": 18.5}),
        system("lost_hard_negatives", {"i2t_recall_1": 0.08}),
    )
    assert shown(hard_negatives(read_published("vitcap-r"), found, {})) == [
        ["dual encoder, before hard negatives", "0.44", "-"],
        ["dual encoder, after hard negatives", "0.31", "-"],
        ["change with hard negatives", "-0.13", "-"],
        ["retriever paper (flickr8k)", "10.0 (9.0-11.0)", "20.0 (20.0-20.0)"],
        ["retriever alone (flickr8k)", "30.0 (29.0-31.0)", "-"],
        ["retriever paper_hard_negatives (flickr8k)", "8.0 (7.0-9.0)", "18.5 (18.5-18.5)"],
        ["change with hard negatives", "-2.00", "-1.50"],
        ["retriever lost_hard_negatives (flickr8k)", "8.0 (7.0-9.0)", "-"],
    ]


def test_ranks_give_the_change_its_paired_interval(tmp_path: Path) -> None:
    """All four images are hits after, none before: every resample says +100."""
    paths = [
        write_ranks(tmp_path / "paper", [2, 3, 4, 2]),
        write_ranks(tmp_path / "paper_hard_negatives", [1, 1, 1, 1]),
    ]
    found = built(system("paper", {"i2t_recall_1": 0.0}), system("paper_hard_negatives", {"i2t_recall_1": 1.0}))
    table = hard_negatives(read_published("vitcap-r"), found, read_ranks(paths))
    assert shown(table)[-1][1] == "+100.00 (+100.00 to +100.00)"
