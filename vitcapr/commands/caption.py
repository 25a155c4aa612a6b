"""Caption photographs with a trained captioner."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from PIL import Image

from vitcapr.artefacts.feature_manifest import read_sealed
from vitcapr.artefacts.model_folder import read_model
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.commands.beside_model import BesideModel, find_model
from vitcapr.commands.options import Device, NamedBackbone, OwnVocabulary, Settings
from vitcapr.commands.program import typed
from vitcapr.config.base import parse, parse_settings
from vitcapr.config.decoding import DecodingConfig
from vitcapr.data.images import BadImage
from vitcapr.data.photographs import FIGURE_SUFFIX, find_photographs, open_photograph
from vitcapr.decoding.generate import generate
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.errors import UserError
from vitcapr.features.encoders.image_towers import NO_GRID
from vitcapr.features.encoders.photographs import PhotographEncoder, open_like
from vitcapr.features.encoders.precision import autocast, resolve_device, resolve_dtype
from vitcapr.figures.attention import attended_words
from vitcapr.figures.style import save_figure
from vitcapr.models.captioners import Captioner, build_captioner
from vitcapr.progress import Reporter
from vitcapr.stages.decode import DecodeSettings
from vitcapr.tables.table import Table, row
from vitcapr.tables.terminal import print_listing

BATCH = 16
"""Photographs in one forward pass."""


@dataclass(frozen=True)
class Describer:
    """A captioner and everything it needs to generate captions."""

    model: Captioner
    words: Vocabulary
    encoder: PhotographEncoder
    decoding: DecodingConfig
    device: torch.device

    def __call__(self, pictures: Sequence[Image.Image], keep_attention: bool) -> list[list[Hypothesis]]:
        """The candidates of each picture, the best first."""
        wanted = self.decoding
        features = self.encoder.encode(pictures)
        with torch.inference_mode(), autocast(self.device, resolve_dtype(wanted.precision, self.device)):
            return generate(
                self.model,
                self.model.encode({name: features[name] for name in self.model.arrays}),
                self.words,
                beam_size=wanted.beam_size,
                n_best=wanted.n_best,
                max_length=wanted.max_length,
                min_length=wanted.min_length,
                length_penalty=wanted.length_penalty,
                block_ngram=wanted.block_ngram,
                keep_attention=keep_attention,
            )


def main(
    images: Annotated[list[str], typer.Argument(help="Photographs, folders of them, or quoted patterns.")],
    captioner: Annotated[
        Path | None,
        typer.Option(help="Folder of the trained captioner; if results/ holds a single one, that by default."),
    ] = None,
    n_best: Annotated[int | None, typer.Option("--n-best", "-n", min=1, help="Captions for each photograph.")] = None,
    beam_size: Annotated[int | None, typer.Option(min=1, help="1 is greedy decoding.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Draw beside each photograph where the captioner looked for each word.")
    ] = False,
    output_dir: Annotated[Path | None, typer.Option(help="Where --explain draws, if not beside.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Settings = "{}",
    device: Device = "auto",
    vocabulary: OwnVocabulary = None,
    features: Annotated[
        Path | None, typer.Option(help="manifest.json of the features it was trained on, if not the experiment's own.")
    ] = None,
    backbone: NamedBackbone = None,
) -> None:
    """Caption photographs of any size with a trained captioner.

    The experiment that contains the captioner supplies vocabulary and backbone. Other decoding settings are the
    defaults of the stage decode.
    """
    decoding = _decoding(parse_settings(DecodeSettings, settings).decoding, beam_size, n_best)
    paths, nothing = find_photographs(images)
    bad = dict(nothing)
    reporter = Reporter()
    rows: list[dict[str, Any]] = []
    if paths:
        describer = _open(find_model(captioner, "captioner"), decoding, device, vocabulary, features, backbone)
        if explain and not describer.model.attends:
            raise UserError("this captioner does not attend to patches", where=captioner, remedy="leave out --explain")
        if explain and describer.encoder.grid == NO_GRID:
            raise UserError(
                "what this captioner attends to has no grid, so no place in the picture",
                where=captioner,
                remedy="leave out --explain",
            )
        with reporter.track("caption", len(paths), "photographs") as tracker:
            for first in range(0, len(paths), BATCH):
                batch = paths[first : first + BATCH]
                opened = _opened(batch, bad)
                found = describer(list(opened.values()), explain) if opened else []
                for (path, picture), candidates in zip(opened.items(), found, strict=True):
                    row = _row(path, candidates, describer.words)
                    if explain:
                        folder = path.parent if output_dir is None else output_dir
                        row["attention"] = str(_draw(folder, path, picture, candidates[0], describer))
                    rows.append(row)
                tracker.advance(len(batch))
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        _print(rows)
    for name, reason in bad.items():
        reporter.line(f"bad: {name}: {reason}")
    if bad:
        raise UserError(f"{len(bad)} of {len(paths) + len(nothing)} have no caption", remedy="see the lines above")


def _decoding(decoding: DecodingConfig, beam_size: int | None, n_best: int | None) -> DecodingConfig:
    """Widen the beam to ``n_best`` candidates, unless its size is given."""
    values = decoding.canonical()
    if n_best is not None:
        values["n_best"] = n_best
        values["beam_size"] = max(values["beam_size"], n_best)
    if beam_size is not None:
        values["beam_size"] = beam_size
    return parse(DecodingConfig, values, where="--n-best, --beam-size")


def _open(
    folder: Path,
    decoding: DecodingConfig,
    device_name: str,
    vocabulary: Path | None,
    features: Path | None,
    backbone: str | None,
) -> Describer:
    """Raises:
    UserError: the captioner or a file that it needs is missing.
    """
    device = resolve_device(device_name)
    weights, card = read_model(folder)
    beside = BesideModel(folder, card, "captioner")
    words = Vocabulary.read(beside.vocabulary(vocabulary))
    attributes = read_sealed(beside.features(features))["attributes"]
    encoder = open_like(attributes, device, beside.backbone(backbone, attributes))
    model = build_captioner(card["architecture"])
    model.load_state_dict(weights)
    return Describer(model.to(device).eval(), words, encoder, decoding, device)


def _opened(paths: Sequence[Path], bad: dict[str, str]) -> dict[Path, Image.Image]:
    """The readable pictures; the others are added to ``bad`` with the reason."""
    pictures = {}
    for path in paths:
        try:
            pictures[path] = open_photograph(path)
        except BadImage as error:
            bad[str(path)] = error.reason
    return pictures


def _row(path: Path, candidates: Sequence[Hypothesis], words: Vocabulary) -> dict[str, Any]:
    described = [
        {
            "caption": words.decode(candidate.tokens),
            "log_prob": round(candidate.log_prob, 6),
            "score": round(candidate.score, 6),
        }
        for candidate in candidates
    ]
    return {"path": str(path), **described[0], "candidates": described}


def _draw(folder: Path, path: Path, picture: Image.Image, best: Hypothesis, describer: Describer) -> Path:
    """Draw the captioner's attention as ``<photograph>.attention.png``."""
    assert best.attention is not None
    weights = best.attention.astype(np.float32).reshape(-1, *describer.encoder.grid)
    said = [describer.words.words[token] for token in best.tokens]
    figure = attended_words(describer.encoder.seen(picture), said, weights)
    written = folder / (path.name + FIGURE_SUFFIX)
    save_figure(figure, written)
    return written


def _print(rows: Sequence[dict[str, Any]]) -> None:
    """Print one caption per line after its log-probability, aligned; a terminal truncates long lines."""
    lines = [
        row(one["path"] if rank == 0 else "", f"{candidate['log_prob']:.2f}", candidate["caption"])
        for one in rows
        for rank, candidate in enumerate(one["candidates"])
    ]
    if lines:
        print_listing(Table("", ("", "", ""), tuple(lines), align="lrl"))


app = typed(main)
