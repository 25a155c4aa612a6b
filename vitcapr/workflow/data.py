"""The stage that reads a data set, and the user's files it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.base import Section
from vitcapr.config.data import CocoSettings, Flickr8kSettings, Flickr30kSettings, ScenesSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.workflow.machine import find_data
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class DataStages:
    """Pictures and captions -> one manifest."""

    config: ExperimentConfig

    @cached_property
    def read(self) -> Stage:
        dataset = self.config.data.dataset
        builders: dict[str, Callable[[Wildcards], Section]] = {
            "scenes": lambda _: ScenesSettings(scenes=self.config.data.scenes),
            "flickr8k": self._flickr8k_settings,
            "flickr30k": self._flickr30k_settings,
            "coco": self._coco_settings,
        }
        return Stage(f"data_{dataset}", builders[dataset], sources=self.files)

    def files(self, _: Wildcards) -> dict[str, Path]:
        """The user's files that the data set is read from, by their keys."""
        data = self.config.data
        if data.dataset == "flickr8k":
            text = find_data(data.flickr8k.text)
            # Beside a captions file that is named itself, the lists of the official splits are read too.
            lists = sorted(text.parent.glob("Flickr_8k.*Images.txt")) if text.is_file() else []
            return {
                "data.flickr8k.images": find_data(data.flickr8k.images),
                "data.flickr8k.text": text,
                **{f"data.flickr8k.text/{path.name}": path for path in lists},
            }
        if data.dataset == "flickr30k":
            sources = {"images": data.flickr30k.images, "text": data.flickr30k.text, "lists": data.flickr30k.lists}
            return {f"data.flickr30k.{key}": find_data(name) for key, name in sources.items() if name}
        if data.dataset == "coco":
            files = {"data.coco.images": find_data(data.coco.images)}
            if data.coco.karpathy:
                return files | {"data.coco.karpathy": find_data(data.coco.karpathy)}
            named = enumerate(data.coco.annotations)
            return files | {f"data.coco.annotations.{place}": find_data(name) for place, name in named}
        return {}

    def _flickr8k_settings(self, _: Wildcards) -> Flickr8kSettings:
        data = self.config.data
        found = {"images": str(find_data(data.flickr8k.images)), "text": str(find_data(data.flickr8k.text))}
        return Flickr8kSettings(
            flickr8k=data.flickr8k.model_copy(update=found), on_bad_image=data.on_bad_image, max_pixels=data.max_pixels
        )

    def _flickr30k_settings(self, _: Wildcards) -> Flickr30kSettings:
        data = self.config.data
        named = {"images": data.flickr30k.images, "text": data.flickr30k.text, "lists": data.flickr30k.lists}
        found = {key: str(find_data(name)) if name else None for key, name in named.items()}
        return Flickr30kSettings(
            flickr30k=data.flickr30k.model_copy(update=found),
            on_bad_image=data.on_bad_image,
            max_pixels=data.max_pixels,
        )

    def _coco_settings(self, _: Wildcards) -> CocoSettings:
        data = self.config.data
        found = {
            "images": str(find_data(data.coco.images)),
            "annotations": [str(find_data(name)) for name in data.coco.annotations],
            "karpathy": str(find_data(data.coco.karpathy)) if data.coco.karpathy else None,
        }
        return CocoSettings(
            coco=data.coco.model_copy(update=found), on_bad_image=data.on_bad_image, max_pixels=data.max_pixels
        )
