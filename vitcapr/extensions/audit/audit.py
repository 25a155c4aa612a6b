"""The audit of a data set from the stores of its images and captions: a table of captions, counts, leaks and a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.data.images import BadImage, ImageSource, data_url, thumbnail
from vitcapr.data.photographs import MAX_PIXELS
from vitcapr.errors import UserError
from vitcapr.extensions.audit import suspicion
from vitcapr.extensions.audit.leaks import EQUAL, NEAR, ODD, SHARED, caption_facts, image_leaks
from vitcapr.files import write_text
from vitcapr.formats.caption_audit import write_audit
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.page import html_page, html_tables
from vitcapr.formats.tables import Table, number, row, to_page
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore

SHOWN = 100
"""Captions, and pairs of images, on the page."""


@dataclass(frozen=True)
class Audit:
    """``captions`` has a row for each caption, but for its ids; ``leaks`` a row for each pair of images."""

    data: Manifest
    captions: pd.DataFrame
    leaks: pd.DataFrame
    counts: Table

    def write(self, parquet: Path, leaks: Path, table: Path, page: Path) -> None:
        write_audit(parquet, self._with_ids())
        write_text(leaks, frame_to_csv(self.leaks))
        write_text(table, to_page([self.counts]))
        write_text(page, self._page())

    @property
    def look(self) -> list[str]:
        """Sentences for the list "what to look at" of the first page."""
        near = (self.leaks["leak"] == NEAR).sum()
        return [f"{near:,} held-out pictures are nearly equal to one of another split (audit)."] if near else []

    def _with_ids(self) -> Iterator[pd.DataFrame]:
        """Yield a row group at a time, with the ids and with the oddities as one text."""
        ids = {
            f"better_{kind}": table.column(f"{kind}_id")
            for kind, table in (("image", self.data.image_table), ("caption", self.data.caption_table))
        }
        for part in self.data.caption_table.batches("caption_id", "image_id", "split"):
            own = self.captions.loc[part.index]
            for name, each in ids.items():
                own[name] = each.iloc[own[name].clip(lower=0)].where(own[name].to_numpy() >= 0, "").to_numpy()
            flags = own[[*ODD]].to_numpy(bool)
            own["odd"] = ["; ".join(np.array(ODD)[each]) if each.any() else "" for each in flags]
            yield part.join(own.drop(columns=["image_row", "held_out", *ODD]))

    def _page(self) -> str:
        """Return the most suspicious captions to mark right or wrong, the counts, and the leaks side by side."""
        from jinja2 import Environment

        worst = self.captions.nsmallest(SHOWN, "rank")
        texts = self.data.caption_table.rows(worst.index.to_numpy(), "caption_id", "text")
        better = worst["better_caption"][worst["better_caption"] >= 0].unique()
        better_texts = self.data.caption_table.rows(better, "text")["text"].to_dict() if len(better) else {}
        images = self.data.image_table.column("path")
        leaks = self.leaks.head(SHOWN).to_dict("records")
        paths = dict(zip(self.data.image_table.column("image_id"), images, strict=True)) if leaks else {}
        with ImageSource(self.data.image_root) as source:
            captions = [
                {
                    **facts,
                    "better_text": better_texts.get(facts["better_caption"]),
                    "picture": _picture(source, images[facts["image_row"]]),
                    "better_picture": _picture(source, images.get(facts["better_image"])),
                }
                for facts in worst.join(texts).to_dict("records")
            ]
            pairs = [
                {**each, "pictures": [_picture(source, paths[each[end]]) for end in ("first", "second")]}
                for each in leaks
            ]
        template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        values = {"counts": html_tables(to_page([self.counts])), "captions": captions, "pairs": pairs}
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        return html_page(f"Audit of {self.data.dataset}", environment.from_string(template).render(**values))


def audit(data: Manifest, images: FeatureStore, texts: FeatureStore, reporter: Reporter) -> Audit:
    """Audit the captions and images of a data set.

    Raises:
        UserError: a store is of another data set, or the data set has fewer than three images.
    """
    images.check_rows("image_id", data)
    texts.check_rows("caption_id", data)
    vectors = images["cls"]
    if len(vectors) < 3:
        raise UserError("an audit needs three images", where=data.dataset, remedy="add images")
    facts = caption_facts(data.caption_parts(), texts.attributes.get("max_length") or np.inf)
    owner = facts["image_row"].to_numpy()
    stores = suspicion.PairedStores(vectors, texts["text"], np.bincount(owner, minlength=len(vectors)))
    with reporter.track("audit", 2 * len(facts), "comparisons") as tracker:
        pairs, null, better_image, better_caption = suspicion.measure(stores, advance=tracker.advance)
    share = suspicion.wrong_share(pairs, null, owner)
    scores = pd.DataFrame({"suspicion": pairs})
    scores["rank"] = scores["suspicion"].rank(ascending=False, method="first").astype(np.int32)
    scores["p"] = suspicion.right_as_suspicious(pairs, null, share.value)
    scores["wrong"] = suspicion.probability_wrong(pairs, null, share.value)
    captions = scores.assign(better_image=better_image, better_caption=better_caption).join(facts)
    leaks, compared = image_leaks(data, vectors)
    return Audit(data, captions, leaks, _counts(captions, share, leaks, {EQUAL: len(vectors), NEAR: compared}))


def _counts(captions: pd.DataFrame, share: suspicion.Share, leaks: pd.DataFrame, images: dict[str, int]) -> Table:
    """Captions with the share of each kind, and pairs of images beside the number of images."""
    every, held_out = np.ones(len(captions), bool), captions["held_out"].to_numpy()
    kinds = {"more probably wrong than right": (captions["wrong"] >= 0.5, every)}
    kinds |= {kind: (captions[kind], held_out if kind == SHARED else every) for kind in ODD}
    counted = [("wrong, estimated", share.value * len(captions), len(captions), share)]
    for kind, (flags, among) in kinds.items():
        if among.any():
            part = suspicion.share_of(flags.to_numpy()[among], captions["image_row"].to_numpy()[among])
            counted.append((kind, flags.sum(), among.sum(), part))
    rows = [row(kind, f"{n:,.0f}", f"{of:,}", number(*part, scale=100, places=2)) for kind, n, of, part in counted]
    rows += [row(kind, f"{(leaks['leak'] == kind).sum():,}", f"{of:,}", "") for kind, of in images.items()]
    return Table("Audit", ("what", "number", "of", "percent"), tuple(rows), align="lrrr")


def _picture(source: ImageSource, path: str | None) -> str:
    """Return a thumbnail for ``src``; empty without a file."""
    if path is None:
        return ""
    try:
        return data_url(thumbnail(source.open(path, MAX_PIXELS), 160))
    except BadImage:
        return ""
