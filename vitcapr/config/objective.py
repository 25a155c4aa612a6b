"""Losses of dual encoders: parts that a phase of training names, each with settings of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, SerializeAsAny, ValidationError

from vitcapr.config.base import Section
from vitcapr.errors import UserError
from vitcapr.loader import load_part, part_names

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """The images and captions of a batch, of all processes, as a loss compares them.

    Attributes:
        images: (B, E) float32, of length 1 unless the loss sets ``unit_images`` to false.
        captions: (M, E) float32, of length 1.
        similarity: (B, M) float32, the dot products of both.
        owners: (M,) int64, the image of each caption.
        temperature: a scalar, learned or fixed.
        bias: a learned scalar, if the loss sets ``start_bias``.
    """

    images: "Tensor"
    captions: "Tensor"
    similarity: "Tensor"
    owners: "Tensor"
    temperature: "Tensor"
    bias: "Tensor | None" = None


class Loss(Section):
    """A loss of dual encoders. Its fields are its keys in the configuration."""

    unit_images: ClassVar[bool] = True
    """Whether images have length 1; captions always have."""
    start_bias: ClassVar[float | None] = None
    """Initial value of a learned bias; None: there is none."""
    validates: ClassVar[bool] = False
    """Whether the validation loss is this loss; by default it is InfoNCE."""

    kind: str

    def loss(self, pairs: Pairs) -> "Tensor":
        """Return the mean loss of a true pair, a scalar."""
        raise NotImplementedError


def read_loss(value: Any) -> Any:
    """Return the loss of a name, or of a section with the name as ``kind`` and the settings of the loss.

    Raises:
        ValueError: there is no such loss, it cannot be imported, or a setting is wrong.
    """
    if isinstance(value, Loss):
        return value
    given = {"kind": value} if isinstance(value, str) else value
    names = part_names("LOSS")
    if not isinstance(given, Mapping) or given.get("kind") not in names:
        raise ValueError(f"it must be one of {', '.join(names)}, or a section with one of them as kind")
    try:
        part = load_part("LOSS", given["kind"])
        if not (isinstance(part, type) and issubclass(part, Loss)):
            raise ValueError(f"LOSS of '{given['kind']}' must be a subclass of vitcapr.config.objective.Loss")
        return part.model_validate(given)
    except UserError as error:
        raise ValueError(str(error)) from error
    except ValidationError as error:
        raise ValueError("\n".join(_mistake(each, part) for each in error.errors())) from error


def _mistake(error: Any, part: type[Loss]) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"'{key}' is not a key of this loss; it has {', '.join(part.model_fields)}"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}"


AnyLoss = Annotated[
    SerializeAsAny[Loss],
    BeforeValidator(read_loss, json_schema_input_type=Literal[tuple(part_names("LOSS"))] | dict[str, Any]),
]
"""The loss of a phase; the name of one is enough if its settings keep their defaults."""
