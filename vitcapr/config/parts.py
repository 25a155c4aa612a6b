"""Parts that the configuration names, each with settings of its own: losses, heads, towers and rerankers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

from vitcapr.config.base import Section
from vitcapr.errors import UserError, did_you_mean
from vitcapr.loader import load_part, part_names, parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from vitcapr.retrieval.reranking import Candidates


class Part(Section):
    """The class that the module of a part defines. Its fields are its keys in the configuration."""

    kind: str

    @model_serializer(mode="wrap")
    def _name_alone(self, serialise: SerializerFunctionWrapHandler) -> Any:
        """Return the plain settings; the name alone, if the part has no others."""
        values = {name: value for name, value in serialise(self).items() if name not in self._excluded()}
        return values if len(values) > 1 else self.kind


@dataclass(frozen=True)
class Names:
    """Marks a key that names a part: ``head: Annotated[SerializeAsAny[Head], Names("HEAD", Head)]``.

    The value is the name, or a section with the name as ``kind`` and the settings of the part.

    Attributes:
        kind: the kind of part, a key of :data:`vitcapr.loader.KINDS`.
        base: the class whose subclasses fit the key.
    """

    kind: str
    base: type[Section]

    def names(self) -> list[str]:
        """Return the parts that fit, and those of extensions, which are not imported."""
        own = parts(self.kind)
        return [name for name in part_names(self.kind) if name in own or self._fits(load_part(self.kind, name))]

    def read(self, value: Any) -> Any:
        """Return the part with its settings.

        Raises:
            ValueError: there is no such part, it cannot be imported, or a setting is wrong.
        """
        if isinstance(value, self.base):
            return value
        given = {"kind": value} if isinstance(value, str) else value
        if not isinstance(given, Mapping) or given.get("kind") not in part_names(self.kind):
            raise ValueError(f"it must be one of {', '.join(self.names())}, or a section with one of them as kind")
        name = given["kind"]
        try:
            part = load_part(self.kind, name)
            if not self._fits(part):
                needed = f"{self.base.__module__}.{self.base.__name__}"
                raise ValueError(f"{self.kind} of '{name}' must be a subclass of {needed}; {', '.join(self.names())}")
            return part.model_validate(given)
        except UserError as error:
            raise ValueError(str(error)) from error
        except ValidationError as error:
            raise ValueError("\n".join(self._mistake(each, part) for each in error.errors())) from error

    def _fits(self, part: Any) -> bool:
        return isinstance(part, type) and issubclass(part, self.base)

    def _mistake(self, error: Any, part: type[Section]) -> str:
        key = ".".join(map(str, error["loc"]))
        if error["type"] == "extra_forbidden":
            meant = did_you_mean(key, list(part.model_fields), f"it has {', '.join(part.model_fields)}")
            return f"'{key}' is not a key of this {self.kind.lower()}; {meant}"
        return f"{key}: {error['msg'].removeprefix('Value error, ')}".removeprefix(": ")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": self.names(), "type": "string"}, {"additionalProperties": True, "type": "object"}]}


class Head(Part):
    """A head of a dual encoder."""

    learns: ClassVar[bool] = True
    """Whether its network has weights to learn."""

    def build(self, features: int, embedding_dim: int, dropout: float) -> "nn.Module":
        """Return the network, from pooled features (B, D) to the shared space (B, E).

        Args:
            features: D.
            embedding_dim: E.
            dropout: that of the tower.
        """
        raise NotImplementedError


AnyHead = Annotated[SerializeAsAny[Head], Names("HEAD", Head)]
"""The head of a tower; the name is enough if all its settings keep their defaults."""


class Reranker(Part):
    """A scorer of the candidates of an image, which reads a trained retriever."""

    def scores(self, candidates: "Candidates") -> "list[NDArray[np.float64]]":
        """Return the scores of each image's candidates; high is good, and the scale is that of a cosine."""
        raise NotImplementedError


AnyReranker = Annotated[SerializeAsAny[Reranker], Names("RERANKER", Reranker)]
"""The scorer of a reranking; the name is enough if all its settings keep their defaults."""
