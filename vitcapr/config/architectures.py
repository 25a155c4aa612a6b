"""The sections of all captioners, plugins included.

Apart from the sections themselves, which a plugin imports: its own section is read here, once the plugin is complete.
"""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from vitcapr.config.base import with_default
from vitcapr.config.captioner import (
    BaselineConfig,
    CaptionerConfig,
    LanguageModelCaptionerConfig,
    PatchAttentionConfig,
    TransformerConfig,
)
from vitcapr.plugins import plugins

_CONFIGS = (PatchAttentionConfig, BaselineConfig, TransformerConfig, LanguageModelCaptionerConfig)
if TYPE_CHECKING:
    AnyCaptionerConfig = CaptionerConfig
else:
    AnyCaptionerConfig = Annotated[
        Union[(*_CONFIGS, *(plugin.load("Config") for plugin in plugins("CAPTIONER").values()))],
        Field(discriminator="architecture"),
        with_default("architecture", "patch_attention"),
    ]
