"""A trained captioner for images that are in no data set.

The module does not import torch: a mistake is found without it.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vitcapr.api.model_files import ModelFiles, choose_decoding
from vitcapr.api.published_model import find_model
from vitcapr.config.captioner import DecodingConfig
from vitcapr.data.photographs import ImageLike, as_list, name_of, open_image
from vitcapr.encoders.loading import one_at_a_time
from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

    from vitcapr.decoding.stepwise import Hypothesis
    from vitcapr.encoders.image_recipe import PhotographEncoder
    from vitcapr.formats.captions import Candidate
    from vitcapr.models.interface import Captioner

Device = Literal["auto", "cpu", "cuda"]
BATCH = 16
"""Images in one forward pass."""
NO_GRID = (0, 0)


@dataclass(frozen=True)
class CaptionedImage:
    """The caption of an image.

    Attributes:
        image: the path as it was given; empty for a picture in memory.
        caption: the best one.
        log_prob: its log-probability.
        score: the number by which the candidates are ordered.
        candidates: all captions, the best first, with their words and the log-probability of every word.
        attention: (words, rows, columns) float32, where the captioner looked for each word; None if not asked for.
    """

    image: str
    caption: str
    log_prob: float
    score: float
    candidates: "tuple[Candidate, ...]"
    attention: np.ndarray | None = None

    def rounded(self, decimals: int) -> list[dict[str, Any]]:
        """Caption, log-probability and score of every candidate, for JSON."""
        return [
            {"caption": one.caption, "log_prob": round(one.log_prob, decimals), "score": round(one.score, decimals)}
            for one in self.candidates
        ]


@dataclass
class TrainedCaptioner:
    """A trained captioner with all that it needs to caption images; made by :func:`load_captioner`.

    The weights and the backbone are loaded for the first image.

    Attributes:
        files: the folder of the captioner and what belongs to it.
        vocabulary: ``vocabulary.json`` that it was trained with.
        features: manifest of the features that it was trained on.
        backbone: hub id or folder, if it is not found by its name.
        decoding: how captions are generated; ``decoding_name`` is its name in the experiment, or empty.
    """

    files: ModelFiles
    vocabulary: Path
    features: Path
    backbone: str | None
    decoding_name: str
    decoding: DecodingConfig
    device: Device

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what names the files. The models are loaded again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def folder(self) -> Path:
        return self.files.folder

    @one_at_a_time
    def caption(self, images: ImageLike, *, attention: bool = False) -> list[CaptionedImage]:
        """Return the captions of photographs of any size, in their order.

        Args:
            images: one or several of paths, pictures of Pillow, bytes of files, and RGB arrays (H, W, 3) of uint8.
            attention: keep where the captioner looked for each word of the best caption.

        Raises:
            UserError: a file is no usable picture, or the captioner does not attend to places of the picture.
        """
        given, captioned = as_list(images), []
        for first in range(0, len(given), BATCH):
            batch = given[first : first + BATCH]
            hypotheses = self._generate([open_image(image) for image in batch], attention)
            captioned += [self._described(name_of(one), best) for one, best in zip(batch, hypotheses, strict=True)]
        return captioned

    @property
    def attends(self) -> bool:
        """Whether the captioner can say where in the picture it looked for a word."""
        return self._model.attends and self._encoder.grid != NO_GRID

    def check_attention(self) -> None:
        """Check that the captioner attends to places of the picture."""
        if not self.attends:
            what = "this captioner does not attend to places of the picture"
            raise UserError(what, where=self.folder, remedy="caption without attention (leave out --explain)")

    def seen(self, picture: "Image") -> "Image":
        """Return the part of an RGB picture that the patches tile."""
        return self._encoder.seen(picture)

    def _generate(self, pictures: "Sequence[Image]", attention: bool) -> "list[list[Hypothesis]]":
        """Return the hypotheses of each picture, the best first."""
        import torch

        from vitcapr.decoding.generate import generate, search_arguments
        from vitcapr.encoders.devices import autocast, resolve_device, resolve_dtype

        if attention:
            self.check_attention()
        decoding, device = self.decoding, resolve_device(self.device)
        features = self._encoder.encode(pictures)
        with torch.inference_mode(), autocast(device, resolve_dtype(decoding.precision, device)):
            return generate(
                self._model,
                self._model.encode({name: features[name] for name in self._model.arrays}),
                self._words,
                **search_arguments(decoding),
                images=[zlib.crc32(picture.tobytes()) for picture in pictures],
                keep_attention=attention,
            )

    def _described(self, name: str, hypotheses: "Sequence[Hypothesis]") -> CaptionedImage:
        from vitcapr.decoding.generate import attention_of, candidates_of

        candidates = candidates_of(hypotheses, self._words)
        best, attention = candidates[0], None
        if hypotheses[0].attention is not None:
            weights = attention_of([0], hypotheses[:1], self._words, self._encoder.grid).weights
            attention = weights.astype(np.float32).reshape(-1, *self._encoder.grid)
        return CaptionedImage(name, best.caption, best.log_prob, best.score, tuple(candidates), attention)

    @cached_property
    @one_at_a_time
    def _model(self) -> "Captioner":
        from vitcapr.decoding.generate import open_captioner
        from vitcapr.encoders.devices import resolve_device, resolve_dtype

        self.files.check_architecture()
        device = resolve_device(self.device)
        dtype = resolve_dtype(self.decoding.precision, device)
        return open_captioner(self.folder, self._words, dtype).to(device).eval()

    @cached_property
    @one_at_a_time
    def _encoder(self) -> "PhotographEncoder":
        from vitcapr.encoders.devices import resolve_device

        return self.files.encoders([self.features], resolve_device(self.device), self.backbone)[0]

    @cached_property
    def _words(self) -> Vocabulary:
        return Vocabulary.read(self.vocabulary)


def load_captioner(
    folder: str | Path | None = None,
    *,
    decoding: str | None = None,
    n_best: int | None = None,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    device: Device = "auto",
    backbone: str | None = None,
) -> TrainedCaptioner:
    """Return a trained captioner, with the decoding of its experiment.

    Examples:
        >>> captioner = vitcapr.load_captioner("results/demo/captioners/attention")  # doctest: +SKIP
        >>> captioner.caption("photo.jpg")[0].caption  # doctest: +SKIP

    Args:
        folder: of the captioner, or of an experiment that has only one; None if ``results/`` holds only one.
        decoding: name of a decoding of the experiment; by default, the one with the widest beam.
        n_best: captions for each image.
        beam_size: number of hypotheses; 1 is greedy decoding.
        length_penalty: replaces the length penalty of the decoding.
        device: the device: auto, cpu or cuda.
        backbone: hub id or folder of the backbone, if not found by its name.

    Raises:
        UserError: something is missing or does not belong to the captioner.
    """
    files = find_model(folder, "captioner")
    changes = {"n_best": n_best, "beam_size": beam_size, "length_penalty": length_penalty}
    name, chosen = choose_decoding(files.folder, decoding, **changes)
    return TrainedCaptioner(files, files.vocabulary, files.stores()[0], backbone, name, chosen, device)
