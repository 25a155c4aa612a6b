"""Log-probabilities of given captions, teacher-forced, by the model that is said to have written them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from vitcapr.batches.sources import read_rows
from vitcapr.decoding.generate import open_captioner
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD, layer_of, read_card
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.store.reader import open_features


@torch.inference_mode()
def caption_likelihoods(
    captioner: Path, features: Path, manifest: Path, vocabulary: Path, words: Mapping[str, Sequence[str]]
) -> dict[str, list[float]]:
    """Return the log-probability of each word and of the end token, by image.

    Args:
        words: the words of a caption of each image; unknown ones make its list shorter.
    """
    data, known = read_manifest(manifest), Vocabulary.read(vocabulary)
    model, device = open_captioner(captioner, known, torch.float32).eval(), torch.device("cpu")
    rows, values = data.rows_of(list(words)), {}
    with open_features(features).at_layer(layer_of(read_card(captioner / CARD), "captioner")) as store:
        for row, (image, caption) in zip(rows, words.items(), strict=True):
            read = {name: array.float() for name, array in read_rows(store, model.arrays, rows[rows == row], device).items()}
            *inputs, _ = numbers = known.encode(caption)
            tokens = torch.tensor([inputs])
            logits = model(model.encode(read), tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros(1, dtype=torch.long))
            log_probs = logits.float().log_softmax(-1).gather(1, torch.tensor(numbers[1:])[:, None])
            values[image] = log_probs[:, 0].tolist()
    return values
