"""The stage that reads a data set, and the user's files it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.config.base import Section
from vitcapr.config.data import CocoSettings, Flickr8kSettings, Flickr30kSettings, PairsSettings, ScenesSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.workflow.machine import find_data
from vitcapr.workflow.stage import Stage, Wildcards

PAIRS_BESIDES = ("pairs.parquet", "pairs.json", "pools.npz", "cleaning.json")
"""What the stage ``data_pairs`` writes besides a manifest and its tables."""


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
            "pairs": self._pairs_settings,
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
        if data.dataset == "pairs":
            return {key: find_data(name) for key, name in self._files_of_pairs.items() if name}
        return {}

    @property
    def besides(self) -> list[str]:
        """What the stage writes besides the manifest and its tables."""
        if self.config.data.dataset != "pairs":
            return []
        return [f"results/{{experiment}}/data/{name}" for name in PAIRS_BESIDES]

    @property
    def _files_of_pairs(self) -> dict[str, str]:
        data = self.config.data
        if data.pairs.source == "flickr8k":
            return {
                "data.flickr8k.images": data.flickr8k.images,
                "data.flickr8k.text": data.flickr8k.text,
                "data.pairs.chinese": data.pairs.chinese,
            }
        if data.pairs.source == "table":
            return {"data.pairs.table": data.pairs.table, "data.pairs.images": data.pairs.images}
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

    def _pairs_settings(self, _: Wildcards) -> PairsSettings:
        data = self.config.data
        found = {key: str(path) for key, path in self.files(None).items()}
        pairs = {name: found.get(f"data.pairs.{name}", "") for name in ("table", "images", "chinese")}
        flickr8k = {name: found.get(f"data.flickr8k.{name}", "") for name in ("images", "text")}
        return PairsSettings(
            pairs=data.pairs.model_copy(update=pairs),
            flickr8k=data.flickr8k.model_copy(update=flickr8k),
            scenes=data.scenes,
            on_bad_image=data.on_bad_image,
            max_pixels=data.max_pixels,
        )
