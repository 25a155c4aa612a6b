"""A feature store as datasets of ``torch.utils.data``, for training loops of one's own."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from vitcapr.batches.image_batches import Batches
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.formats.store_manifest import arrays_of_layer
from vitcapr.store.layout import TEXT
from vitcapr.store.reader import FeatureStore, open_features

Store = str | os.PathLike[str] | FeatureStore
Captions = str | os.PathLike[str] | Manifest
Sample = dict[str, Any]


class FeatureDataset(Dataset[Sample]):
    """The images of a store, one a sample; the rows of a store of captions likewise.

    A sample is a dictionary: each array of ``tokens`` (``patches``: (P, D), ``cls``: (D,)), ``row`` and ``id``; with
    ``captions`` also ``captions``, the texts, and ``caption_rows``, their rows in a store of captions. The tensors lie
    in the memory map of the store where its dtype allows (all but int8), so do not write to them.

    The dataset can be pickled, and is safe in the workers of a ``DataLoader`` by fork and by spawn. Give the loader
    ``collate_fn=FeatureDataset.collate``.

    Args:
        store: the manifest of the features, its folder, or an open store.
        captions: the data set of the images: its manifest, or the folder of it.
        split: keep the images of this split; it needs ``captions``. None: every row.
        layers: hidden layers to read as well, counted from 1, as ``cls_K`` and ``patches_K``.
        tokens: the arrays to read of the output and of each layer; None: all that the store has.
        language: keep the captions in this language; None: all.

    Raises:
        UserError: the store lacks an array or a layer, or has other rows than the data set.
    """

    def __init__(
        self,
        store: Store,
        captions: Captions | None = None,
        *,
        split: str | None = None,
        layers: Sequence[int] = (),
        tokens: Sequence[str] | None = None,
        language: str | None = None,
    ) -> None:
        self.store = store if isinstance(store, FeatureStore) else open_features(Path(store))
        self.arrays = _arrays(self.store, layers, tokens)
        self._ids, self._texts = np.asarray(self.store.ids), dict[int, tuple[list[str], list[int]]]()
        self.rows = np.arange(len(self._ids))
        if captions is not None:
            data = _data(captions)
            self.store.check_rows(self.store.identity, data)
            table = data.captions_of(split, language)
            if self.store.identity == "image_id":
                self.rows = self.rows if split is None else data.rows(split)
                for image, text, row in table[["image_row", "text", "caption_row"]].itertuples(index=False):
                    texts, caption_rows = self._texts.setdefault(image, ([], []))
                    texts.append(text)
                    caption_rows.append(row)
            else:
                self.rows = table["caption_row"].to_numpy()
                self._texts = {
                    row: ([text], [row]) for row, text in zip(self.rows.tolist(), table["text"], strict=True)
                }
        elif split is not None:
            raise UserError(f"which images are in the split '{split}'?", remedy="give the data set: captions=...")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        row = int(self.rows[index])
        sample: Sample = {name: self.store[name].view(row) for name in self.arrays}
        sample |= {"row": row, "id": str(self._ids[row])}
        if self._texts:
            sample["captions"], sample["caption_rows"] = self._texts.get(row, ([], []))
        return sample

    @staticmethod
    def collate(samples: Sequence[Sample]) -> Sample:
        """Collate B samples: tensors and rows are stacked; texts and ids stay lists, a list of texts for each image."""
        return {
            name: torch.stack([sample[name] for sample in samples])
            if isinstance(value, Tensor)
            else torch.tensor([sample[name] for sample in samples])
            if name == "row"
            else [sample[name] for sample in samples]
            for name, value in samples[0].items()
        }


class FeatureBatches(IterableDataset[Sample]):
    """Shuffled batches of the images of a store: the loader of this package's own trainings.

    Each iteration is one epoch, or the rest of one that was left. A batch is a dictionary: the arrays, (B, ...), and
    ``rows``, (B,). With ``captions`` it has ``texts``, a list of M texts or, with ``text_features``, (M, D); and
    ``image_index``, (M,), the image of each among the B images. A thread reads ahead: use the batches as they are, or
    in ``DataLoader(batches, batch_size=None)``.

    The batches are divided among the workers of a ``DataLoader``, and each batch among the processes of ``torchrun``,
    so that no two of them read the same rows. A final batch with fewer images than processes is left out.

    ``state_dict`` and ``load_state_dict``, which torchdata's ``StatefulDataLoader`` calls too, continue with the next
    batch in the same order.

    Args:
        store, captions, split, layers, tokens, language: as for :class:`FeatureDataset`.
        batch_images: B, over all processes together.
        captions_per_image: captions to draw of each image; None: all. Images without captions are left out.
        text_features: a store of the captions, whose rows stand for the texts.
        seed: seed of the order and of the captions.
        shuffle_chunks: None shuffles all images; else this many chunks at a time, for stores larger than memory.

    Raises:
        UserError: as for :class:`FeatureDataset`; or no image has a caption.
    """

    def __init__(
        self,
        store: Store,
        captions: Captions | None = None,
        *,
        split: str | None = None,
        layers: Sequence[int] = (),
        tokens: Sequence[str] | None = None,
        language: str | None = None,
        batch_images: int = 64,
        captions_per_image: int | None = None,
        text_features: Store | None = None,
        seed: int = 0,
        shuffle_chunks: int | None = None,
    ) -> None:
        self._samples = FeatureDataset(store, captions, split=split, layers=layers, tokens=tokens, language=language)
        self._features = None if text_features is None else FeatureDataset(text_features, captions, tokens=[TEXT]).store
        if captions is None and (self._features is not None or captions_per_image is not None):
            raise UserError("captions are asked for without a data set", remedy="give the data set: captions=...")
        self._with_captions = captions is not None
        self._texts = _Texts(self._samples, self._features)
        if not len(self._texts.image_row):
            raise UserError("no image has a caption", where=self._samples.store.manifest_path, remedy="see the split")
        self._options: dict[str, Any] = {
            "batch_images": batch_images,
            "captions_per_image": captions_per_image,
            "arrays": self._samples.arrays,
            "seed": seed,
            "shuffle_chunks": shuffle_chunks,
        }
        self._epoch, self._batch = 0, 0

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._places(self._batches()))

    def state_dict(self) -> dict[str, int]:
        """Return the position: the epoch, and the batch that comes next in it."""
        return {"epoch": self._epoch, "batch": self._batch}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue at a position that :meth:`state_dict` returned."""
        self._epoch, self._batch = state["epoch"], state["batch"]

    def set_epoch(self, epoch: int) -> None:
        """Begin this epoch: a ``DataLoader`` with workers copies the dataset in each of its epochs."""
        self._epoch, self._batch = epoch, 0

    def _batches(self) -> Batches:
        more: dict[str, Any] = {"epoch": self._epoch, "share": _process()}
        return Batches(self._samples.store, self._texts, self._samples.rows, **self._options, **more)

    def _places(self, batches: Batches) -> range:
        """Return the numbers of the batches that every process has a share of."""
        return range(len(batches) - (batches.smallest() < _process()[1]))

    def __iter__(self) -> Iterator[Sample]:
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        batches = self._batches()
        for batch in batches.read(self._places(batches)[first::step][self._batch :]):
            self._batch += 1
            sample: Sample = {**batch.features, "rows": batch.rows}
            if self._with_captions:
                sample |= {"texts": batch.texts, "image_index": batch.image_index}
            yield sample
        self._epoch, self._batch = self._epoch + 1, 0


class _Texts:
    """The captions of the samples by their places; of samples without captions, one empty text each."""

    def __init__(self, samples: FeatureDataset, features: FeatureStore | None) -> None:
        owners, self._texts, rows = [], list[str](), list[int]()
        for image in samples.rows.tolist():
            texts, caption_rows = samples._texts.get(image, ([], [])) if samples._texts else ([""], [-1])
            owners += [image] * len(texts)
            self._texts += texts
            rows += caption_rows
        self.image_row, self._rows, self._features = np.asarray(owners, np.int64), np.asarray(rows), features

    def of(self, captions: np.ndarray) -> Any:
        if self._features is not None:
            return torch.from_numpy(self._features[TEXT].gather(self._rows[captions]))
        return [self._texts[place] for place in captions.tolist()]


def _process() -> tuple[int, int]:
    """Return the rank of this process of ``torchrun``, and their number."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _data(captions: Captions) -> Manifest:
    return captions if isinstance(captions, Manifest) else read_manifest(Path(captions))


def _arrays(store: FeatureStore, layers: Sequence[int], tokens: Sequence[str] | None) -> list[str]:
    """Return the names of the arrays to read, checked against those of the store."""
    known = [name for name in ("cls", "patches", TEXT) if name in store]
    chosen = list(known if tokens is None else tokens)
    for layer in layers:
        names = dict(zip(("cls", "patches"), arrays_of_layer(layer), strict=True))
        chosen += [names[name] for name in (known if tokens is None else tokens) if name in names]
    for name in chosen:
        store[name]
    return chosen
