"""The page on which one drops a photograph, and ``POST /caption``, which answers a picture with JSON."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from vitcapr.api.trained_captioner import CaptionedImage, TrainedCaptioner
from vitcapr.api.trained_retriever import TrainedRetriever
from vitcapr.data.images import BadImage, ImageSource, data_url, decode, thumbnail
from vitcapr.data.photographs import MAX_PIXELS
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.formats.page import COLOURS, STYLE
from vitcapr.metrics.clip_score import unit
from vitcapr.progress import Reporter
from vitcapr.report.attended import SCRIPT

PAGE = Path(__file__).with_name("page")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NEAREST = 5
"""Captions of the data set that are shown."""
SMALL = 96
"""Pixels of the longer side of their pictures."""
SHOWN = 640
"""Pixels of the longer side of the picture in an answer."""
_DECIMALS = 4


@dataclass(frozen=True)
class Limits:
    """Limits of a file, its picture, its transfer, and the number of uploads at once; further uploads wait."""

    max_bytes: int = 30_000_000
    max_pixels: int = MAX_PIXELS
    seconds: float = 30.0
    uploads: int = 4


class CaptionPage:
    """The page of a captioner and, perhaps, a retriever. They are asked one photograph at a time."""

    def __init__(
        self, captioner: TrainedCaptioner, retriever: TrainedRetriever | None = None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._captioner, self._retriever, self._training = captioner, retriever, TrainingImages(captioner)
        self._uploads, self._turn = asyncio.Semaphore(self.limits.uploads), asyncio.Lock()
        self._loading: Reporter | None = None
        self.error: Exception | None = None

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/about", self._about),
            Route("/caption", self._caption, methods=["POST"]),
            Route("/samples/{number}", self._sample),
            Route("/attended.js", FileResponse(SCRIPT)),
            *(Route(f"/{name}.css", FileResponse(file)) for name, file in (("colours", COLOURS), ("style", STYLE))),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ]

    def load(self, report: Reporter, failed: Callable[[], None]) -> None:
        """Load everything in a thread before the first photograph; the page shows how far it is.

        Args:
            failed: called if it ends with an error, which is then ``self.error``.
        """

        def answer() -> None:
            try:
                self.answer(Image.new("RGB", (64, 64), "grey"))
            except Exception as error:
                self.error = error
                failed()
            self._loading = None

        self._loading = report
        Thread(target=answer, daemon=True).start()

    def answer(self, picture: Image.Image) -> dict[str, Any]:
        """Return the caption of an RGB picture, the attention of its words, and the nearest captions.

        The first call loads all weights, and embeds the captions of the data set if their embeddings are not kept.
        """
        caption = self._captioner.caption(picture, attention=self._captioner.attends)[0]
        candidates = caption.rounded(_DECIMALS)
        nearest = []
        if self._retriever is not None:
            captions = self._retriever.nearest("captions", self._retriever.query(None, picture), NEAREST)
            captions = captions.rename(columns={"text": "caption", "path": "image"}).round(_DECIMALS)
            nearest = captions[["cosine", "caption", "image"]].to_dict("records")
            with ImageSource(self._retriever.image_root) as source:
                for one in nearest:
                    one["thumbnail"] = _thumbnail(source, one["image"])
        return {
            **candidates[0],
            "words": _words(caption),
            "candidates": candidates,
            "nearest": nearest,
            "likeness": self._training.likeness(picture),
            "picture": data_url(thumbnail(self._captioner.seen(picture), SHOWN)),
        }

    async def _about(self, _: Request) -> JSONResponse:
        """Return the names of the models and of the decoding, and the limits; before that, what is still loading."""
        if self._loading is not None:
            return JSONResponse({"loading": self._loading.doing or "Loading the models"})
        return JSONResponse(
            {
                "captioner": self._captioner.folder.resolve().name,
                "decoding": self._captioner.decoding_name or self._captioner.decoding.method,
                "retriever": None if self._retriever is None else self._retriever.folder.resolve().name,
                "limits": asdict(self.limits),
                "samples": len(self._training.samples),
            }
        )

    async def _sample(self, request: Request) -> Response:
        """Return a picture of the data set, to try."""
        numbers = list(map(str, range(len(self._training.samples))))
        if (number := request.path_params["number"]) not in numbers:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such sample")
        try:
            return Response(await run_in_threadpool(self._training.sample, int(number)), media_type="image/*")
        except BadImage as error:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"this sample cannot be read: {error.reason}") from error

    async def _caption(self, request: Request) -> JSONResponse:
        async with self._uploads:
            content = await self._content(request)
            async with self._turn:
                while self._loading is not None:
                    await asyncio.sleep(0.1)
                return JSONResponse(await run_in_threadpool(self._answer_file, content))

    async def _content(self, request: Request) -> bytes:
        """Return the uploaded file."""
        content, limits = bytearray(), self.limits
        try:
            async with asyncio.timeout(limits.seconds):
                async for piece in request.stream():
                    content += piece
                    if len(content) > limits.max_bytes:
                        what = f"the file has more than {limits.max_bytes} bytes"
                        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, what)
        except TimeoutError:
            what = f"the file did not arrive in {limits.seconds:g} s"
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, what, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "the file did not arrive whole") from None
        return bytes(content)

    def _answer_file(self, content: bytes) -> dict[str, Any]:
        try:
            return self.answer(decode(content, self.limits.max_pixels))
        except BadImage as error:
            reason = f"this image cannot be used: {error.reason}"
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, reason) from error


def _thumbnail(source: ImageSource, path: str) -> str | None:
    """Return a small picture of the data set for the page; None if its file is missing now."""
    try:
        return data_url(thumbnail(source.open(path, MAX_PIXELS), SMALL))
    except BadImage:
        return None


def _words(caption: CaptionedImage) -> list[dict[str, Any]]:
    """Return the words of the best caption; ``attention`` has the rows and columns of the patches, or is None."""
    best = caption.candidates[0]
    maps = [None] * len(best.tokens) if caption.attention is None else caption.attention.round(_DECIMALS + 1).tolist()
    return [
        {"word": word, "log_prob": round(log_prob, _DECIMALS), "attention": attention}
        for word, log_prob, attention in zip(best.tokens, best.token_log_probs, maps, strict=False)
    ]


MANIFEST = "data/manifest.json"
SAMPLES = 6
_COMPARED = 2000
"""Training images that a photograph is compared with, at most."""
_BLOCK = 64
_UNUSUAL = 0.01
"""The share of the training images whose nearest other one is as far as an unusual photograph's."""


def usual_cosine(units: NDArray[np.floating]) -> float:
    """Return the lowest usual cosine of a unit vector (N, D) and its nearest neighbour."""
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    return float(np.quantile(cosines.max(axis=1), _UNUSUAL))


class TrainingImages:
    """Images of a captioner whose experiment has its data set.

    Without the data set there are no samples and no likeness.
    """

    def __init__(self, captioner: TrainedCaptioner) -> None:
        self._captioner = captioner

    def likeness(self, picture: Image.Image) -> dict[str, float] | None:
        """Return the cosine of a photograph and the nearest training image, and the least that is usual."""
        if self._compared is None:
            return None
        units, usual = self._compared
        features = self._captioner._encoder.encode([picture])
        own = _unit_summary({name: np.asarray(each.cpu()) for name, each in features.items()})[0]
        return {"cosine": round(float((units @ own).max()), _DECIMALS), "usual": round(usual, _DECIMALS)}

    def sample(self, number: int) -> bytes:
        """Return the file of a sample."""
        assert self._data is not None
        with ImageSource(self._data.image_root) as source:
            return source.read(self.samples[number])

    @cached_property
    def samples(self) -> Sequence[str]:
        """The paths of some images of the test split, or of all."""
        if self._data is None:
            return []
        images = self._data.images
        paths = images["path"][images["split"] == "test"].tolist() or images["path"].tolist()
        return paths[:: max(1, len(paths) // SAMPLES)][:SAMPLES]

    @cached_property
    def _data(self) -> Manifest | None:
        try:
            return read_manifest(self._captioner.files.experiment / MANIFEST)
        except UserError:
            return None

    @cached_property
    def _compared(self) -> tuple[NDArray[np.float32], float] | None:
        """Unit vectors (N, D) of some training images, and their :func:`usual_cosine`."""
        from vitcapr.store.reader import open_features

        if self._data is None:
            return None
        try:
            store = open_features(self._captioner.features).at_layer(self._captioner.files.model.layer)
        except UserError:
            return None
        with store:
            training = set(self._data.images["image_id"][self._data.images["split"] == "train"])
            rows = [row for row, image in enumerate(store.image_ids) if image in training]
            rows = rows[:: -(-len(rows) // _COMPARED) or 1]
            if len(rows) < 2:
                return None
            blocks = (rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK))
            parts = [_unit_summary({name: array[block] for name, array in store.items()}) for block in blocks]
            units = np.concatenate(parts)
            return units, usual_cosine(units)


def _unit_summary(features: Mapping[str, NDArray[np.floating]]) -> NDArray[np.float32]:
    """Return the normalised mean patch of each image, (B, D).

    Its cosines separate photographs from drawings better than those of CLS.
    """
    patches = features.get("patches")
    vectors = features["cls"] if patches is None else np.asarray(patches, np.float32).mean(axis=1)
    return unit(vectors).astype(np.float32)
