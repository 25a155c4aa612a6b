"""What the server says about a photograph, and about itself."""

import base64
from typing import TYPE_CHECKING, Any

from PIL import Image

from vitcapr.errors import UserError
from vitcapr.retrieval.page import thumbnail

if TYPE_CHECKING:
    from vitcapr.api.captioner import CaptionedImage, TrainedCaptioner
    from vitcapr.api.retriever import TrainedRetriever

NEAREST = 5
"""Captions of the data set that are shown."""
SHOWN = 640
"""Pixels of the longer side of the picture in an answer."""
_DECIMALS = 4
_BLANK = Image.new("RGB", (64, 64), (128, 128, 128))


class Answers:
    """The captioner and the retriever behind the server. They are asked one photograph at a time."""

    def __init__(self, captioner: "TrainedCaptioner", retriever: "TrainedRetriever | None" = None) -> None:
        self._captioner, self._retriever = captioner, retriever

    def prepare(self) -> None:
        """Load all weights, and embed the captions of the data set if their embeddings are not kept.

        Raises:
            UserError: something is missing or does not belong to the models.
        """
        self.answer(_BLANK)

    def about(self) -> dict[str, Any]:
        """The models and the decoding."""
        return {
            "captioner": str(self._captioner.folder),
            "decoding": self._captioner.decoding.method,
            "retriever": None if self._retriever is None else str(self._retriever.folder),
        }

    def answer(self, picture: Image.Image) -> dict[str, Any]:
        """The caption of an RGB picture, its words with their attention, and the nearest captions of the data set."""
        found = self._captioner.caption(picture, attention=self._attends())[0]
        shown = self._captioner.seen(picture)
        nearest = [] if self._retriever is None else self._nearest(self._retriever, picture)
        candidates = [
            {"caption": one.caption, "log_prob": round(one.log_prob, _DECIMALS), "score": round(one.score, _DECIMALS)}
            for one in found.candidates
        ]
        return {
            **candidates[0],
            "words": _words(found),
            "candidates": candidates,
            "nearest": nearest,
            "picture": f"data:image/jpeg;base64,{base64.b64encode(thumbnail(shown, SHOWN)).decode('ascii')}",
        }

    def _attends(self) -> bool:
        """Whether the captioner can say where in the picture it looked for a word."""
        try:
            self._captioner.check_attention()
        except UserError:
            return False
        return True

    def _nearest(self, retriever: "TrainedRetriever", picture: Image.Image) -> list[dict[str, Any]]:
        found = retriever.find_captions(retriever.query(None, picture), NEAREST)
        return [{"cosine": round(one.cosine, _DECIMALS), "caption": one.text, "image": one.path} for one in found]


def _words(found: "CaptionedImage") -> list[dict[str, Any]]:
    """The words of the best caption; ``attention`` has the rows and columns of the patches, or is None."""
    best = found.candidates[0]
    maps = [None] * len(best.tokens) if found.attention is None else found.attention.round(_DECIMALS + 1).tolist()
    return [
        {"word": word, "log_prob": round(log_prob, _DECIMALS), "attention": attention}
        for word, log_prob, attention in zip(best.tokens, best.token_log_probs, maps, strict=False)
    ]
