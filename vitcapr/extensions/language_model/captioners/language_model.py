"""A pretrained language model that reads CLS and patches as a prefix."""

from collections.abc import Mapping
from math import isqrt
from typing import Any, Literal

from pydantic import Field

from vitcapr.config.base import Section
from vitcapr.config.captioner import CaptionerConfig, LanguageModelConfig
from vitcapr.errors import UserError


class PrefixConfig(Section):
    """Image prefix of a language model: CLS, then the patches, each projected to the width of the model.

    The projector is Linear - GELU - Linear, as in LLaVA 1.5.
    """

    grid: int | None = Field(None, ge=0)
    """Pool the patches to grid x grid means; null: every patch; 0: CLS alone."""


class Config(CaptionerConfig):
    words = "text/pieces/{captioner}"

    architecture: Literal["language_model"] = "language_model"
    language_model: LanguageModelConfig
    prefix: PrefixConfig = PrefixConfig()
    train: Literal["projector", "lora", "all"] = "lora"
    """The projector alone, with low-rank adapters of every linear layer (rank 16, Hu et al. 2021; they need peft: pip
    install 'vitcapr[language-model]'), or with all weights. What is not trained is kept in the arithmetic's data type,
    and not stored with the captioner."""

    @property
    def attends(self) -> bool:  # type: ignore[override]
        return self.prefix.grid != 0

    @property
    def libraries(self) -> dict[str, tuple[str, str]]:
        return {"train: lora": ("peft", "language-model")} if self.train == "lora" else {}

    def check_patches(self, patches: int) -> None:
        grid = self.prefix.grid
        if grid and (isqrt(patches) ** 2 != patches or grid**2 > patches):
            what = f"prefix.grid: {grid} is to pool a larger square, but {patches} patches are stored"
            raise UserError(what, remedy="lower it, or set it to null")

    def described(self) -> dict[str, Any]:
        return {key: value for key, value in super().described().items() if key != "language_model"}


def CAPTIONER(**arguments: Any) -> Any:  # noqa: N802
    """Return the network. It loads transformers, which the configuration does not need."""
    from ._network import LanguageModelCaptioner

    return LanguageModelCaptioner(**arguments)


def find_pretrained(settings: Mapping[str, Any], card: Mapping[str, Any] | None = None) -> Any:
    """Find the language model of a captioner; ``card`` is the entry of a trained one."""
    from ._checkpoint import find_language_model, find_trained

    source, revision = settings["language_model"]["source"], settings["language_model"]["revision"]
    if card is not None:
        return find_trained(source, card)
    return find_language_model(source, revision, in_float32=settings["train"] == "all")
