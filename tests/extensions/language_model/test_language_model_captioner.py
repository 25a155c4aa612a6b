"""The captions of an image behind one prefix: each as the language model reads it alone."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from transformers import BloomConfig, BloomForCausalLM, LlamaConfig, LlamaForCausalLM, MambaConfig, MambaForCausalLM

from tests.models.networks import save_language_model, tiny_network
from tests.models.untrained import architecture, untrained
from tests.training import test_captioner_task as captioning
from vitcapr.encoders.checkpoints import open_tokenizer
from vitcapr.errors import UserError
from vitcapr.extensions.language_model.captioners._checkpoint import group_queries, load_language_model
from vitcapr.extensions.language_model.captioners._network import image_words
from vitcapr.models.interface import build_captioner
from vitcapr.training.captioner_task import TrainingImages

TOKENS = torch.tensor([[1, 5, 6, 7], [1, 8, 0, 0], [1, 9, 4, 0]])
IMAGES = torch.tensor([0, 0, 1])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@torch.no_grad()
def test_captions_side_by_side_equal_each_alone(kind: str) -> None:
    model: Any = untrained("language_model", 11, 8, network=kind).eval()
    features = {"patches": torch.randn(2, 4, 8), "cls": torch.randn(2, 8)}
    with torch.enable_grad():
        memory = {name: value.detach() for name, value in model.encode(features).items()}
    together = model(memory, TOKENS, TOKENS != 0, IMAGES)
    alone = []
    for caption, image in zip(TOKENS, IMAGES, strict=True):
        read = torch.cat([memory["prefix"][image], model.embedding(caption[caption != 0])])
        alone.append(tiny_network(kind)(inputs_embeds=read[None]).logits[0, 5:])
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-5, atol=1e-5)


def test_rare_words_of_an_image_count_more() -> None:
    texts = {0: "a red boat boats", 1: "a dog", 3: "a red dog"}  # All say "a", the start and the end.
    words = captioning.VOCABULARY
    images = TrainingImages(captioning.STORE, captioning.TOKENS, np.arange(4), seed=0)
    ((features, weights),) = image_words(images, np.array([*texts]), ("cls",), len(words))
    expected = torch.zeros(len(texts), len(words))
    for image, text in enumerate(texts.values()):
        for word in text.split():
            with_it = sum(word in other.split() for other in texts.values())
            expected[image, words.index[word]] = math.log(len(texts) / with_it)
    torch.testing.assert_close(weights, expected / expected.sum(1, keepdim=True))
    assert torch.equal(features["cls"], torch.from_numpy(captioning.STORE["cls"].values[[*texts]]).float())


@torch.no_grad()
def test_grouped_queries_attend_as_with_a_copy_of_each_key() -> None:
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 8, "num_hidden_layers": 2, "initializer_range": 0.5}
    network = LlamaForCausalLM(LlamaConfig(vocab_size=11, num_attention_heads=8, num_key_value_heads=2, **shape)).eval()
    options = {
        "output_attentions": True,
        "attention_mask": torch.zeros(2, 1, 4, 4).masked_fill(torch.eye(4) == 1, -9.0),
    }
    network.set_attn_implementation("eager")
    expected = network(torch.arange(8).view(2, 4), **options)
    group_queries(network)
    grouped = network(torch.arange(8).view(2, 4), **options)
    torch.testing.assert_close(grouped.logits, expected.logits)
    torch.testing.assert_close(grouped.attentions, expected.attentions)


def test_a_model_that_would_mix_captions_is_refused() -> None:
    torch.manual_seed(0)
    shape = {"vocab_size": 11, "hidden_size": 8, "initializer_range": 0.5}
    bloom = BloomForCausalLM(BloomConfig(**shape, n_layer=2, n_head=2)).eval()  # Its positions are those of the keys.
    mamba = MambaForCausalLM(MambaConfig(**shape, num_hidden_layers=2)).eval()  # It has no attention.
    described = architecture("language_model", 11, 8)
    for network in (bloom, mamba):
        with pytest.raises(UserError, match="does not take a mask over several captions"):
            build_captioner(described, network=network)


@pytest.mark.parametrize("train", ["projector", "lora", "all"])
def test_what_is_trained_is_what_is_stored(train: str) -> None:
    model = untrained("language_model", 11, 8, train=train).train()
    features = {"patches": torch.randn(2, 4, 8), "cls": torch.randn(2, 8)}
    model(model.encode(features), TOKENS, TOKENS != 0, IMAGES).square().sum().backward()
    touched = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()}
    stored = model.state_dict()
    # An adapter begins as zero: its first factor has no gradient yet.
    assert touched == {name for name in stored if "lora_A" not in name}
    assert any("lora" in name for name in stored) == (train == "lora")
    assert any("embed_tokens" in name for name in stored) == (train == "all")
    other = untrained("language_model", 11, 8, seed=1, train=train)
    other.load_state_dict(stored)
    assert all(torch.equal(value, stored[name]) for name, value in other.state_dict().items())
    with pytest.raises(RuntimeError, match="of another captioner"):
        other.load_state_dict({name: value for name, value in stored.items() if "projector" not in name})


@torch.no_grad()
def test_a_prefix_begins_as_the_regression_onto_what_is_said_of_the_image() -> None:
    model: Any = untrained("language_model", 11, 8).eval()
    features = {"patches": torch.randn(30, 4, 8), "cls": torch.randn(30, 8)}
    shares = torch.rand(30, 11).softmax(1)
    halves = [
        ({name: array[half] for name, array in features.items()}, shares[half]) for half in (slice(20), slice(20, 30))
    ]
    model.start_projector(halves)
    prefix = model.encode(features)["prefix"].flatten(0, 1)
    read = model.projector[:-1](torch.cat([features["cls"][:, None], features["patches"]], 1)).flatten(0, 1)
    words = (shares @ model.embedding.weight)[:, None].expand(-1, 5, -1).flatten(0, 1)
    centred = read - read.mean(0)
    expected = (
        Ridge(alpha=float((centred**2).sum() / read.shape[1])).fit(read, words).predict(read) - words.mean(0).numpy()
    )
    enlarged = torch.from_numpy(expected).float() * model.embedding.weight.std() / expected.std()
    torch.testing.assert_close(prefix - prefix.mean(0), enlarged, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(prefix.mean(0), words.mean(0), rtol=1e-3, atol=1e-3)


def test_the_rows_of_the_pieces_are_taken(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "tiny", ["a dog runs", "the big dog runs"])
    rows = (1, 0, 1, 17, 5)
    whole = load_language_model(folder, range(len(open_tokenizer(folder))), torch.float32)
    part = load_language_model(folder, rows, torch.float32)
    assert part.get_output_embeddings().weight is part.get_input_embeddings().weight
    read = torch.tensor([[1, 3, 4]])
    expected = whole(input_ids=torch.tensor(rows)[read]).logits[..., rows]
    torch.testing.assert_close(part(input_ids=read).logits, expected)
