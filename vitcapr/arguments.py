"""Checks the arguments of the public functions against their annotations."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from vitcapr.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` with checked arguments.

    It raises a UserError for an argument that is missing, unknown or of another type than its annotation, and for an
    error of the file system.

    A number of numpy is a number, and a list a sequence. Annotations that are text are not checked.
    """
    signature = inspect.signature(function)

    @cache
    def kinds() -> dict[str, TypeAdapter[Any]]:
        annotations = {
            name: each.annotation for name, each in signature.parameters.items() if each.kind is not each.VAR_KEYWORD
        }
        config = ConfigDict(arbitrary_types_allowed=True)
        return {
            name: TypeAdapter(annotation, config=config)
            for name, annotation in annotations.items()
            if annotation is not inspect.Parameter.empty and not isinstance(annotation, str)
        }

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        place = f"{function.__name__}()"
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UserError(str(error), where=place) from error
        for name, kind in kinds().items():
            if name in bound.arguments:
                try:
                    bound.arguments[name] = kind.validate_python(bound.arguments[name])
                except ValidationError as error:
                    value = f"{type(bound.arguments[name]).__name__} {bound.arguments[name]!r}"[:80]
                    reason = error.errors(include_url=False, include_input=False)[0]["msg"]
                    raise UserError(f"{name} is wrong: {value}: {reason}", where=place) from error
        try:
            return function(*bound.args, **bound.kwargs)
        except (OSError, UnicodeError, MemoryError) as error:
            raise UserError(str(error) or "out of memory", where=place) from error

    return call
