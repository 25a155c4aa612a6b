"""The audit of a data set from the stores of its images and captions: a table of captions, counts, leaks and a page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.data.images import BadImage, ImageSource, data_url, thumbnail
from vitcapr.errors import UserError
from vitcapr.files import write_text
from vitcapr.formats.caption_audit import write_audit
from vitcapr.formats.containers import ROW_GROUP, frame_to_csv
from vitcapr.formats.manifest import SPLITS, Manifest
from vitcapr.formats.tables import Cell, Table, number, row, to_page
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore
from vitcapr.studies.audit.captions import ODD, CaptionFacts, read_facts
from vitcapr.studies.audit.images import equal_images, nearly_equal
from vitcapr.studies.audit.share import Share, probability_wrong, right_as_suspicious, share_of, wrong_share
from vitcapr.studies.audit.suspicion import PairedStores, Suspicion, measure

SHARED = "in the training split word for word"
SHOWN = 100
"""Captions, and pairs of images, on the page."""
_MAX_PIXELS = 100_000_000


@dataclass(frozen=True)
class Audit:
    """``captions`` has a row for each caption, but for its ids; ``leaks`` a row for each pair of images."""

    captions: pd.DataFrame
    leaks: pd.DataFrame
    counts: Table

    def write(self, data: Manifest, parquet: Path, leaks: Path, table: Path, page: Path) -> None:
        write_audit(parquet, _with_ids(self.captions, data))
        write_text(leaks, frame_to_csv(self.leaks))
        write_text(table, to_page([self.counts]))
        write_text(page, _page(self, data))


def audit(
    data: Manifest, images: FeatureStore, texts: FeatureStore, rivals: int, near: float, reporter: Reporter
) -> Audit:
    """Audit the captions and images of a data set.

    Args:
        rivals: see :func:`vitcapr.studies.audit.suspicion.measure`.
        near: the least cosine, about the mean, of nearly equal images.

    Raises:
        UserError: a store is of another data set, or the data set has fewer than three images.
    """
    images.check_rows("image_id", data)
    texts.check_rows("caption_id", data)
    vectors, longest = images["cls"], texts.attributes.get("max_length") or np.inf
    if len(vectors) < 3:
        raise UserError("an audit needs three images", where=data.dataset, remedy="add images")
    # A word is at least a token, and two tokens are special.
    facts = read_facts(data.caption_parts(), lambda text: len(text.split()) + 2 > longest)
    counts = np.bincount(facts.image_row, minlength=len(vectors))
    with reporter.track("audit", 2 * len(facts.image_row), "captions") as tracker:
        suspicion = measure(PairedStores(vectors, texts["text"], counts), rivals, advance=tracker.advance)
    share = wrong_share(suspicion.pairs, suspicion.null, facts.image_row)
    captions = _captions(suspicion, facts, share.value)
    equal = equal_images(data.image_table.column("sha256"), vectors)
    near_pairs, compared = nearly_equal(data.image_table.column("split").to_numpy(str), vectors, near)
    known = {(each.first, each.second) for each in equal}
    pairs = [("one image under two ids", *each) for each in equal]
    pairs += [("nearly equal across splits", *each) for each in near_pairs if (each.first, each.second) not in known]
    leaks = pd.DataFrame(pairs, columns=["leak", "first", "second", "cosine"])
    for end in ("first", "second"):
        rows = data.image_table.rows(leaks[end].to_numpy(np.int64), "image_id", "split") if len(leaks) else None
        leaks[f"{end}_split"] = [] if rows is None else rows["split"].to_numpy()
        leaks[end] = [] if rows is None else rows["image_id"].to_numpy()
    return Audit(captions, leaks, _counts(captions, facts, share, leaks, compared))


def _captions(suspicion: Suspicion, facts: CaptionFacts, share: float) -> pd.DataFrame:
    rank = np.empty(len(suspicion.pairs), np.int32)
    rank[np.argsort(-suspicion.pairs, kind="stable")] = np.arange(1, len(rank) + 1)
    return pd.DataFrame(
        {
            "suspicion": suspicion.pairs,
            "rank": rank,
            "p": right_as_suspicious(suspicion.pairs, suspicion.null, share),
            "wrong": probability_wrong(suspicion.pairs, suspicion.null, share),
            "better_image": suspicion.better_image,
            "better_caption": suspicion.better_caption,
            **dict(zip(ODD, facts.odd.T, strict=True)),
            SHARED: facts.shared_with_train(),
        }
    )


def _with_ids(captions: pd.DataFrame, data: Manifest) -> Iterator[pd.DataFrame]:
    """A row group at a time, with the ids and with the oddities as one text."""
    ids = {
        f"better_{kind}": _ids(captions[f"better_{kind}"], table.column(f"{kind}_id"))
        for kind, table in (("image", data.image_table), ("caption", data.caption_table))
    }
    kinds = [*ODD, SHARED]
    first = 0
    for part in data.caption_table.batches("caption_id", "image_id", "split"):
        own = captions.iloc[first : first + len(part)]
        better = {name: own[name].map(each) for name, each in ids.items()}
        flags = own[kinds].to_numpy(bool)
        odd = ["; ".join(np.array(kinds)[each]) if each.any() else "" for each in flags]
        yield part.set_axis(own.index).join(own.assign(odd=odd, **better).drop(columns=kinds))
        first += ROW_GROUP


def _ids(rows: "pd.Series[int]", ids: "pd.Series[str]") -> Mapping[int, str]:
    used = rows[rows >= 0].unique()
    return {-1: "", **dict(zip(used, ids.iloc[used], strict=True))}


def _counts(captions: pd.DataFrame, facts: CaptionFacts, share: Share, leaks: pd.DataFrame, compared: int) -> Table:
    def count(name: str, flags: np.ndarray, of: int) -> tuple[Cell, ...]:
        part = share_of(flags, facts.image_row[: len(flags)])
        return row(name, f"{flags.sum():,}", f"{of:,}", number(*part, scale=100, places=2))

    rows = [
        row(
            "wrong, estimated",
            f"{share.value * len(captions):,.0f}",
            f"{len(captions):,}",
            number(*share, scale=100, places=2),
        ),
        count("more probably wrong than right", captions["wrong"].to_numpy() >= 0.5, len(captions)),
        *(count(kind, captions[kind].to_numpy(), len(captions)) for kind in ODD),
    ]
    held_out = np.isin(facts.split, [SPLITS.index("validation"), SPLITS.index("test")])
    if held_out.any():
        part = share_of(captions[SHARED].to_numpy()[held_out], facts.image_row[held_out])
        rows.append(
            row(SHARED, f"{captions[SHARED].sum():,}", f"{held_out.sum():,}", number(*part, scale=100, places=2))
        )
    for kind, of in (("one image under two ids", facts.image_row.max() + 1), ("nearly equal across splits", compared)):
        rows.append(row(kind, f"{(leaks['leak'] == kind).sum():,}", f"{of:,}", ""))
    return Table("Audit", ("what", "number", "of", "percent"), tuple(rows), align="lrrr")


def _page(result: Audit, data: Manifest) -> str:
    """The counts, the most suspicious captions with their pictures, and the leaks side by side."""
    from jinja2 import Environment

    worst = result.captions.nsmallest(SHOWN, "rank")
    texts = data.caption_table.rows(worst.index.to_numpy(), "caption_id", "text", "image_row")
    better = worst["better_caption"].to_numpy()
    better_texts = dict(
        zip(better[better >= 0], data.caption_table.rows(better[better >= 0], "text")["text"], strict=True)
    )
    images = data.image_table.column("path")
    leaks = result.leaks.head(SHOWN).to_dict("records")
    paths = dict(zip(data.image_table.column("image_id"), images, strict=True)) if leaks else {}
    with ImageSource(data.image_root) as source:
        captions = [
            {
                **facts,
                **text,
                "better_text": better_texts.get(facts["better_caption"]),
                "picture": _picture(source, images[text["image_row"]]),
                "better_picture": _picture(source, images.get(facts["better_image"])),
            }
            for facts, text in zip(worst.to_dict("records"), texts.to_dict("records"), strict=True)
        ]
        pairs = [
            {**each, "pictures": [_picture(source, paths[each[end]]) for end in ("first", "second")]} for each in leaks
        ]
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    values = {"dataset": data.dataset, "counts": result.counts, "captions": captions, "pairs": pairs}
    return Environment(autoescape=True).from_string(template).render(**values)


def _picture(source: ImageSource, path: str | None) -> str:
    """A thumbnail for ``src``; empty without a file."""
    if path is None:
        return ""
    try:
        return data_url(thumbnail(source.open(path, _MAX_PIXELS), 160))
    except BadImage:
        return ""
