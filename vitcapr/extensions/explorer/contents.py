"""The data of the explorer: what the page reads at once, and what it reads when an image is opened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.extensions.explorer.columns import (
    Column,
    audit_columns,
    plain,
    space_columns,
    system_columns,
    written_column,
)
from vitcapr.extensions.explorer.results import Gallery, Results, Space, System, build_gallery
from vitcapr.extensions.explorer.spaces import (
    Embed,
    Written,
    describe_images,
    describe_texts,
    embed_captions,
    label_map,
    place_on_map,
)
from vitcapr.formats.captions import Candidate, DecodedCaption
from vitcapr.formats.scores import Score
from vitcapr.metrics.labels import COLUMNS
from vitcapr.report.attended import encoded
from vitcapr.report.figures.examples import mark_words, wrong_words

PART = 100
"""Images whose details are in one file."""
Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything that the explorer shows of a split of some experiments.

    Attributes:
        embed: embeds the captions of the systems; without it, they have no neighbours.
    """

    experiments: Sequence[Results]
    split: str
    embed: Embed = lambda _number, _model, _texts: None

    @cached_property
    def gallery(self) -> Gallery:
        return build_gallery(self.experiments, self.split)

    @cached_property
    def systems(self) -> dict[str, tuple[int, System]]:
        """The systems by their names in the explorer, each with the number of its experiment."""
        numbered = enumerate(self.experiments)
        return {
            self._name(n, f"{each.model}, {each.decoding}"): (n, each) for n, one in numbered for each in one.systems
        }

    @cached_property
    def spaces(self) -> dict[str, tuple[int, Space]]:
        """The retrieval models, in the same way."""
        return {self._name(n, each.model): (n, each) for n, one in enumerate(self.experiments) for each in one.spaces}

    def overview(self) -> Json:
        """Return the first data of the page: the systems with their scores, the retrieval models, the columns."""
        honest = [one.scores for _, one in self.systems.values() if not one.oracle]
        searching = [one.scores for _, one in self.spaces.values()]
        systems = []
        for name, (number, system) in self.systems.items():
            base = self._name(number, f"{system.model}, {system.base}")
            systems.append(
                {
                    "name": name,
                    "base": base if self._base(number, system) else None,
                    "oracle": system.oracle,
                    "claims": bool(system.claims),
                    "scores": _score_cells(system.scores, [] if system.oracle else honest),
                }
            )
        return {
            "title": ", ".join(one.name for one in self.experiments),
            "data": ", ".join(dict.fromkeys(one.data.dataset for one in self.experiments)),
            "split": self.split,
            "part": PART,
            "systems": systems,
            "spaces": [
                {"name": name, "scores": _score_cells(space.scores, searching), "written": list(self.written[name])}
                for name, (_, space) in self.spaces.items()
            ],
            "columns": [
                {key: getattr(each, key) for key in ("name", "label", "group", "better", "places", "mean")}
                for each in self.columns
            ],
        }

    @cached_property
    def columns(self) -> list[Column]:
        columns: list[Column] = []
        numbers = {image: number for number, image in enumerate(self.gallery.images["image_id"])}
        for name, (number, system) in self.systems.items():
            columns += system_columns(name, system, self._base(number, system), numbers)
        for name, (number, space) in self.spaces.items():
            images = np.array(self._numbers(number, space))
            columns += space_columns(name, space, len(self.gallery.images), images)
            for writer, written in self.written[name].items():
                columns.append(written_column(writer, name, written, len(self.gallery.images), images))
        for number, one in enumerate(self.experiments):
            for audit, table in one.audits.items():
                columns += audit_columns(self._name(number, f"audit {audit}"), table, numbers)
        return [column for column in columns if not np.isnan(column.values).all()]

    def images(self) -> Json:
        """Return all images, their captions and references, and the values of the columns."""
        images, references = self.gallery.images, self.gallery.references
        ids, several = images["image_id"].tolist(), references["language"].nunique() > 1
        systems = [system for _, system in self.systems.values()]
        bases = [self._base(number, system) for number, system in self.systems.values()]
        return {
            "ids": ids,
            "sizes": images[["width", "height"]].to_numpy().tolist(),
            "captions": [
                [one.captions[id_].caption if id_ in one.captions else None for id_ in ids] for one in systems
            ],
            "wrong": [
                [[*wrong_words(one.claims[id_]).items()] if id_ in one.claims else None for id_ in ids]
                if one.claims
                else None
                for one in systems
            ],
            "added": [
                base and [_added(one.captions.get(id_), base.captions.get(id_)) for id_ in ids]
                for one, base in zip(systems, bases, strict=True)
            ],
            "references": {
                "image": references["image"].tolist(),
                "text": references["text"].tolist(),
                "language": references["language"].tolist() if several else None,
            },
            "values": [plain(column) for column in self.columns],
        }

    def details(self) -> Iterator[tuple[str, Json]]:
        """(key, content) for each system and part: words, probabilities, candidates, claims and attention by image."""
        for place, (number, system) in enumerate(self.systems.values()):
            rows = {image: row for row, image in enumerate(self.gallery.image_of_row[number].tolist()) if image >= 0}
            for part, images in self._parts():
                shown = (self._details(number, system, image, rows.get(image)) for image in images)
                yield f"details-{place}-{part}", {"images": list(shown)}

    def neighbours(self) -> Iterator[tuple[str, Json]]:
        """(key, content) for each retrieval model and part: the neighbours of its images and of their references."""
        for place, (number, space) in enumerate(self.spaces.values()):
            embedded, numbers = space.embedded, self._numbers(number, space)
            references = self.gallery.reference_of_row[number][embedded.caption_row].tolist()
            images = dict(zip(numbers, describe_images(space, numbers, references), strict=True))
            texts = describe_texts(embedded.captions, embedded.caption_image, space.ranks.t2i, embedded.images, numbers)
            for part, shown in self._parts():
                own = {str(at): text for at, text in zip(references, texts, strict=True) if text["own"][0] in shown}
                yield f"neighbours-{place}-{part}", {"images": list(map(images.get, shown)), "references": own}

    def written_neighbours(self) -> Iterator[tuple[str, Json]]:
        """(key, content) for each retrieval model, system and part: what the captions of the system are near to."""
        systems = list(self.systems)
        for place, (name, (number, space)) in enumerate(self.spaces.items()):
            images, numbers = space.embedded.images, self._numbers(number, space)
            for system, (captions, ranks) in self.written[name].items():
                texts = describe_texts(captions, np.arange(len(images)), ranks, images, numbers)
                near = dict(zip(numbers, texts, strict=True))
                for part, shown in self._parts():
                    yield f"written-{place}-{systems.index(system)}-{part}", {"images": list(map(near.get, shown))}

    @cached_property
    def written(self) -> dict[str, dict[str, Written]]:
        """Return, for each retrieval model, the systems of its experiment whose captions it embeds."""
        spaces = {}
        for name, (number, space) in self.spaces.items():
            systems = {other: system for other, (place, system) in self.systems.items() if place == number}
            ids = self.experiments[number].data.images["image_id"].iloc[space.embedded.image_row].tolist()
            spaces[name] = embed_captions(space, ids, systems, partial(self.embed, number, space.model))
        return spaces

    def maps(self) -> Iterator[tuple[str, Json]]:
        """(key, content) for each retrieval model: the places of its images on a map with labels, or none."""
        references = self.gallery.references
        texts = (
            references[references["language"] == references["language"].iloc[0]].groupby("image")["text"].agg(" ".join)
        )
        for place, (number, space) in enumerate(self.spaces.values()):
            places = place_on_map(space.embedded.images)
            images = self._numbers(number, space)
            labels = [] if places is None else label_map(places, [texts.get(image, "") for image in images])
            content = {"images": images, "places": None if places is None else places.round(4).tolist()}
            yield f"map-{place}", {**content, "labels": labels}

    def _numbers(self, number: int, space: Space) -> list[int]:
        """Return the numbers of the images of a retrieval model in the gallery."""
        numbers: list[int] = self.gallery.image_of_row[number][space.embedded.image_row].tolist()
        return numbers

    def _parts(self) -> Iterator[tuple[int, range]]:
        count = len(self.gallery.images)
        for first in range(0, count, PART):
            yield first // PART, range(first, min(first + PART, count))

    def _name(self, number: int, name: str) -> str:
        """Name a model, with its experiment if there are several.

        Two experiments in different folders may have one name.
        """
        names = [one.name for one in self.experiments]
        if len(names) == 1:
            return name
        same = names[:number].count(names[number])
        return f"{names[number]}{f' ({same + 1})' if same else ''} {name}"

    def _base(self, number: int, system: System) -> System | None:
        _, base = self.systems.get(self._name(number, f"{system.model}, {system.base}"), (number, None))
        return base

    def _details(self, number: int, system: System, image: int, row: int | None) -> Json | None:
        caption = system.captions.get(self.gallery.images["image_id"].iloc[image])
        if caption is None or row is None:
            return None
        shown, weights = _caption_details(caption, system), _attention(system, caption, row)
        if weights is not None:
            return {**shown, "attention": encoded(weights)}
        # Equal words of one captioner for one image have equal attention: another of its systems may have stored it.
        for place, (experiment, other) in enumerate(self.systems.values()):
            if (experiment, other.model) == (number, system.model) and _attention(other, caption, row) is not None:
                return {**shown, "attention_of": place}
        return shown


def _score_cells(scores: Mapping[str, Score], others: Sequence[Mapping[str, Score]]) -> list[Json]:
    """Return the scores that tables know, as tables show them; the best among ``others`` are marked."""
    cells = []
    for name, column in COLUMNS.items():
        if column.group is not None and name in scores and scores[name]["value"] is not None:
            cell = column.cell(scores[name])
            best = column.best(other[name]["value"] for other in others if name in other)
            parts = {"text": cell.text, "interval": cell.interval, "best": cell.text == best}
            cells.append({"name": name, "label": column.short, **parts, "group": column.group.title})
    return cells


def _added(caption: DecodedCaption | None, before: DecodedCaption | None) -> list[int]:
    """Return the places of the words that a reranking added; none in a language without spaces."""
    if caption is None or before is None or " " not in caption.caption:
        return []
    runs = mark_words(caption.caption.split(), before=before.caption.split())
    return [place for place, run in enumerate(run for run in runs if run.change != "del") if run.change]


def _caption_details(caption: DecodedCaption, system: System) -> Json:
    """Words, probabilities, candidates and claims."""
    first = caption.candidates[0]
    added = sorted(first.__pydantic_extra__ or {})
    content: Json = {
        "tokens": list(caption.tokens),
        "log_probs": [round(value, 2) for value in first.token_log_probs[: len(caption.tokens)]],
        "numbers": ["log_prob", "score", *added],
        "candidates": [_candidate(each, added) for each in caption.candidates],
    }
    if claims := system.claims.get(caption.image_id):
        content["claims"] = [list(claim) for claim in claims]
    return content


def _attention(system: System, caption: DecodedCaption, row: int) -> NDArray[np.floating] | None:
    """Return the attention of a system that wrote this caption, for the image of a row of the manifest."""
    own = system.captions.get(caption.image_id)
    if system.attention is None or own is None or own.tokens != caption.tokens:
        return None
    weights = system.attention.of_row(row)
    return weights if weights is not None and len(weights) == len(caption.tokens) else None


def _candidate(candidate: Candidate, added: Sequence[str]) -> list[str | float | None]:
    """Return the caption, its log-probability, its score, and the numbers that a stage added, such as a cosine."""
    extra = candidate.__pydantic_extra__ or {}
    numbers = [candidate.log_prob, candidate.score, *(extra.get(name) for name in added)]
    return [candidate.caption, *(None if number is None else round(number, 3) for number in numbers)]
