"""Tables of scores for people: of a summary, of two systems, of seeds, of ablations; and what a run changed."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from vitcapr.formats.tables import NOTHING, Cell, Table, row, to_markdown, to_page
from vitcapr.metrics.bootstrap import NOT_SHOWN, few_images, interval_protocol
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.metrics.labels import COLUMNS, GROUPS, ScoreColumn, in_groups


def score_tables(summary: pd.DataFrame) -> Iterator[Table]:
    """Yield a table for each data set, split and group of scores of a summary: a row a model, a column a score.

    The best of a column is marked; oracles are not compared. MAP@R from text to image is left out where it is R@1.
    """
    oracles = set(_systems(summary[summary["protocol"].str.startswith(ORACLE)]))
    for (dataset, split), part in summary.groupby(["dataset", "split"], sort=False):
        scores = {
            column.name: dict(zip(_systems(own), own.to_dict("records"), strict=True))
            for column in COLUMNS.values()
            if len(own := part[part["metric"] == column.name])
        }
        if _values(scores.get("t2i_map_r", {})) == _values(scores.get("t2i_recall_1", {})):
            scores.pop("t2i_map_r", None)
        caption = few_images(int(part["n"].max()))
        for group in GROUPS.values():
            columns = [column for column in in_groups(group.name) if column.name in scores]
            systems = dict.fromkeys(
                system for system in _systems(part) if any(system in scores[c.name] for c in columns)
            )
            best = {
                column.name: column.best(
                    one["value"] for system, one in scores[column.name].items() if system not in oracles
                )
                for column in columns
            }
            rows = []
            for system in systems:
                cells = []
                for column in columns:
                    one = scores[column.name].get(system)
                    cell = column.cell(one) if one else Cell(NOTHING)
                    cells.append(cell._replace(best=system not in oracles and cell.text == best[column.name]))
                rows.append(row(", ".join(filter(None, system)), *cells))
            if columns:
                images = max(int(one["n"]) for column in columns for one in scores[column.name].values())
                title = f"{group.title}: {dataset}, {split} split, {images} images"
                names, helps = (column.short for column in columns), (column.help for column in columns)
                name = f"{group.name}_{split}"
                yield Table(title, ("model", *names), tuple(rows), caption=caption, name=name, help=("", *helps))
                caption = ""


def _systems(summary: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the model and the decoding of each row."""
    return list(summary[["model", "decoding"]].itertuples(index=False, name=None))


def _values(scores: Mapping[tuple[str, str], Mapping[Hashable, Any]]) -> dict[tuple[str, str], Any]:
    return {system: one["value"] for system, one in scores.items()}


def scores_page(summary: pd.DataFrame) -> str:
    """Return all tables in Markdown with 95 % intervals, and the protocols of the scores."""
    if summary.empty:
        return "No scores.\n"
    protocols = "".join(f"- `{protocol}`\n" for protocol in summary["protocol"].drop_duplicates())
    words = "\nIn parentheses: 95 % intervals, by resampling images. Protocols:\n\n"
    return to_page(list(score_tables(summary))) + words + protocols


def new_scores(before: pd.DataFrame, after: pd.DataFrame, most: int | None = None) -> Iterator[str]:
    """Yield a line for all rows of the tables that are new, and one for each row whose scores changed.

    Args:
        before, after: the summaries before and after a run (:mod:`vitcapr.formats.scores`).
        most: how many scores a line names; None for all.
    """

    def by_row(summary: pd.DataFrame) -> dict[Any, dict[str, float]]:
        rows = summary.groupby(["dataset", "split", "model", "decoding"], sort=False)
        return {key: dict(zip(part["metric"], part["value"], strict=True)) for key, part in rows}

    old, added, changed = by_row(before), [], []
    for key, scores in by_row(after).items():
        _, split, model, decoding = key
        name = f"{model}, {decoding} ({split})" if decoding else f"{model} ({split})"
        if key not in old:
            added.append(name)
            continue
        changes = []
        for column in in_groups(*GROUPS):
            was, now = (column.exact(values.get(column.name)).shown for values in (old[key], scores))
            if was != now:
                changes.append(f"{column.label} {was} -> {now}")
        if changes:
            more = f" and {len(changes) - most} more" if most and len(changes) > most else ""
            changed.append(f"Changed: {name}: {', '.join(changes[:most])}{more}")
    if added:
        yield f"New: {'; '.join(added)}"
    yield from changed


COMPARISON_COLUMNS = ("score", "before", "after", "difference", "95 % interval", "p", "finding")


def comparison_rows(metrics: Mapping[str, Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    """Return a row of :data:`COMPARISON_COLUMNS` for each entry of a comparison's ``metrics``."""
    rows = []
    for name, one in metrics.items():
        column = COLUMNS[name]
        difference = column.difference(one["difference"], one["low"], one["high"])
        p_value = NOTHING if one["p_value"] is None else f"{one['p_value']:.3f}"
        scores = column.exact(one["before"]), column.exact(one["after"])
        interval = difference.interval or NOTHING
        rows.append(row(column.named, *scores, difference.text, interval, p_value, one["verdict"]))
    return rows


def comparison_page(content: Mapping[str, Any]) -> str:
    """``comparison.json`` in Markdown, with the protocols."""
    sides = {side: content[side] for side in ("before", "after")}
    names = {k: ", ".join(filter(None, (v["model"], v["decoding"]))) or "(no name)" for k, v in sides.items()}
    place = f"{content['dataset']}, {content['split']} split, {content['images']} images"
    table = Table(
        f"{names['after']} against {names['before']}: {place}",
        ("score", *(f"{side}: {name}" for side, name in names.items()), *COMPARISON_COLUMNS[3:]),
        tuple(comparison_rows(content["metrics"])),
        align="lrrrrrl",
        caption=f"{content['changed']} of {content['images']} images have different captions. Scores times 100, "
        "lengths and counts as they are. Difference: after - before, on the same images; interval by resampling "
        f'images, p by exchanging the captions of the systems image by image. "{NOT_SHOWN}" where the interval '
        "contains 0. Not corrected for multiple comparisons.",
    )
    ceilings = [side for side, system in sides.items() if system["protocol"].startswith(ORACLE)]
    lines = [f"**{side.capitalize()} is an oracle: a ceiling, not a result.**\n" for side in ceilings]
    lines += ["Protocols:", "", *(f"- {side}: `{system['protocol']}`" for side, system in sides.items())]
    return "\n".join([to_markdown(table), *lines, f"- comparison: `{content['protocol']}`"]) + "\n"


def difference_table(rows: pd.DataFrame) -> Table:
    """Lay out the paired differences of all systems (:func:`vitcapr.metrics.system_comparison.paired_differences`)."""
    lines = []
    for one in rows.to_dict("records"):
        column = COLUMNS[str(one["metric"])]
        scores = column.exact(one["of_before"]), column.exact(one["of_after"])
        difference = column.difference(one["difference"], one["low"], one["high"])
        p_values = (f"{one[key]:.3f}" for key in ("p_value", "adjusted"))
        lines.append(
            row(column.label, one["after"], one["before"], *scores[::-1], difference, *p_values, one["verdict"])
        )
    return Table(
        "Paired differences",
        ("score", "system", "against", "score of it", "of the other", "difference", "p", "corrected", "finding"),
        tuple(lines),
        align="lllrrrrrl",
        caption="On the same images; 95 % intervals by resampling images; p by exchanging the systems image by image. "
        f"Corrected: after Benjamini and Hochberg, for the {len(rows)} tests of this table. A difference is shown "
        "where the corrected p is below 0.05.",
    )


def spread_tables(spread: pd.DataFrame, paired: pd.DataFrame) -> list[Table]:
    """Return a table for each data set and split, and one of the pairs, from :mod:`vitcapr.metrics.seed_spread`."""
    places = spread.groupby(["dataset", "split"], sort=False)
    tables = [_spread_table(f"{dataset}, {split} split", part) for (dataset, split), part in places]
    return tables if paired.empty else [*tables, _paired_table(paired)]


def _spread_table(place: str, part: pd.DataFrame) -> Table:
    systems = list(part[["model", "decoding"]].drop_duplicates().itertuples(index=False, name=None))
    by_score = {(one["model"], one["decoding"], one["metric"]): one for one in part.to_dict("records")}
    present = set(part["metric"])
    rows = [
        row(column.label, *(_over_seeds(by_score.get((*system, column.name)), column) for system in systems))
        for column in in_groups("references", "image_to_text", "text_to_image")
        if column.name in present
    ]
    seeds = part.groupby(["model", "decoding"], sort=False)["n"].max()
    return Table(
        f"{place}: mean ± standard deviation (minimum to maximum) over seeds",
        ("score", *(", ".join(filter(None, system)) for system in systems)),
        (*rows, row("seeds", *map(str, seeds))),
    )


def _over_seeds(one: Mapping[Hashable, Any] | None, column: ScoreColumn) -> Cell:
    if one is None:
        return Cell(NOTHING)
    mean, sd, low, high = (column.exact(one[key]).text for key in ("mean", "sd", "min", "max"))
    return Cell(f"{mean} ± {sd}", low, high)


def _paired_table(paired: pd.DataFrame) -> Table:
    rows = []
    for one in paired.to_dict("records"):
        column = COLUMNS[one["metric"]]
        label = ", ".join(filter(None, (column.label, one["decoding"])))
        difference = column.difference(one["difference"], one["low"], one["high"])
        finding = one["verdict"]
        if finding != NOT_SHOWN:
            finding = f"{one['second']} {finding} beyond the spread of the seeds"
        won = f"{one['wins']} of {one['n']}"
        rows.append(row(label, one["first"], one["second"], difference.text, difference.interval, won, finding))
    return Table(
        "One against the other, seed by seed",
        ("score", "first", "second", "second - first", "95 % interval", "seeds won", "finding"),
        tuple(rows),
        align="lllrrrl",
        caption="The interval is Student's, over the differences of equal seeds on the same test images. Not "
        "corrected for multiple comparisons.",
    )


def ablation_tables(numbers: pd.DataFrame, samples: int, seed: int) -> list[Table]:
    """Return a table for each split and whole model: its scores, and under them the differences of the other models."""
    tables = []
    for (split, whole), part in numbers.groupby(["split", "whole"], sort=False):
        scores = part.drop_duplicates("metric").set_index("metric")["of_whole"]
        columns = [COLUMNS[metric] for metric in scores.index]
        rows = [row(str(whole), *(column.exact(scores[column.name]) for column in columns))]
        for model, own in part.groupby("model", sort=False):
            bounds = own.set_index("metric")[["difference", "low", "high"]].astype(float)
            rows.append(row(str(model), *(column.difference(*bounds.loc[column.name]) for column in columns)))
        tables.append(
            Table(
                f"{whole}, {split} split",
                ("model", *(column.label for column in columns)),
                tuple(rows),
                caption=f"Scores times 100 of {whole}; under them differences of the other models from it, on the same "
                "images and captions. In parentheses 95 % intervals, by resampling images in pairs "
                f"({'|'.join(interval_protocol(samples, seed))}). One training each: the spread over seeds is not in "
                "the intervals. Not corrected for multiple comparisons.",
            )
        )
    return tables
