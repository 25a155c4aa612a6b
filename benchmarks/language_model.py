"""A language model as captioner: training steps and cached decoding, against transformers' own loop and ``generate``.

Both have the same random weights: 6 of the 30 layers of SmolLM2-135M, 2,500 pieces, a prefix of CLS and 7 x 7 patches,
captions of 14 pieces on average. Theirs is one caption a row, each behind a prefix of its own, padded on the right,
with transformers' default attention; the loss is the model's own. Each takes three turns in one process, and the best
turn counts, in processor seconds. The memory of a step is what is kept for the backward pass.

    python -m benchmarks.language_model --images 8
"""

import argparse
import copy
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.extensions.language_model.captioners._checkpoint import group_queries
from vitcapr.extensions.language_model.captioners._network import LanguageModelCaptioner

PIECES, WIDTH, PATCHES, LENGTH = 2500, 192, 196, 12
PAD, START, END = 0, 1, 2


def captioner() -> tuple[LanguageModelCaptioner, LlamaForCausalLM]:
    """Ours and theirs."""
    torch.manual_seed(0)
    shape = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 6, "initializer_range": 0.1}
    config = LlamaConfig(vocab_size=PIECES, num_attention_heads=9, num_key_value_heads=3, **shape)
    theirs = LlamaForCausalLM(config)
    network = copy.deepcopy(theirs)
    group_queries(network)
    model = LanguageModelCaptioner(PIECES, WIDTH, network, prefix={"grid": 7}, train="all")
    return model, theirs


def captions(images: int, each: int) -> Tensor:
    """(images * each, T): start, pieces, end, padding."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(14, 4, images * each).round(), 4, 30).astype(int)
    rows = [torch.tensor([START, *generator.integers(3, PIECES, length), END]) for length in lengths]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def our_loss(model: LanguageModelCaptioner, features: dict[str, Tensor], tokens: Tensor, image: Tensor) -> Tensor:
    mask = tokens[:, 1:] != PAD
    logits = model(model.encode(features), tokens[:, :-1], mask, image)
    return nn.functional.cross_entropy(logits, tokens[:, 1:][mask])


def their_loss(
    network: LlamaForCausalLM, model: LanguageModelCaptioner, features: dict[str, Tensor], tokens: Tensor, image: Tensor
) -> Tensor:
    prefix = model.encode(features)["prefix"][image]
    read = torch.cat([prefix, network.get_input_embeddings()(tokens)], dim=1)
    before = torch.full(prefix.shape[:2], -100)
    # The start token is given, not predicted.
    labels = torch.cat([before, tokens.masked_fill((tokens == PAD) | (tokens == START), -100)], dim=1)
    mask = torch.cat([torch.ones_like(before), (tokens != PAD).long()], dim=1)
    loss: Tensor = network(inputs_embeds=read, attention_mask=mask, labels=labels, use_cache=False).loss
    return loss


def step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def kept_mb(loss: Callable[[], Tensor]) -> int:
    """Megabytes that a forward pass keeps for the backward pass, the weights included."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = loss()
    del value
    return round(sum(kept.values()) / 1e6)


def best_seconds(forms: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best of three turns of each."""
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(3):
        for name, form in forms.items():
            begin = time.process_time()
            form()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def training(images: int, each: int) -> dict[str, float]:
    model, network = captioner()
    features = {"patches": torch.randn(images, PATCHES, WIDTH), "cls": torch.randn(images, WIDTH)}
    tokens, image = captions(images, each), torch.arange(images).repeat_interleave(each)

    def ours() -> Tensor:
        return our_loss(model, features, tokens, image)

    def theirs() -> Tensor:
        return their_loss(network, model, features, tokens, image)

    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-4)
    memory = {"our_mb": kept_mb(ours), "their_mb": kept_mb(theirs)}
    projected = [*network.parameters(), *model.projector.parameters()]
    optimizers = {"ours": torch.optim.AdamW(model.parameters()), "theirs": torch.optim.AdamW(projected)}
    seconds = best_seconds(
        {"ours": lambda: step(ours, optimizers["ours"]), "theirs": lambda: step(theirs, optimizers["theirs"])}
    )
    return {"speed": round(seconds["theirs"] / seconds["ours"], 2), **memory}


@torch.inference_mode()
def decoding(images: int) -> dict[str, float]:
    """How many times faster captions of :data:`LENGTH` pieces and the end are written than by ``generate``."""
    model, network = captioner()
    model.eval()
    network.eval()
    features = {"patches": torch.randn(images, PATCHES, WIDTH), "cls": torch.randn(images, WIDTH)}
    special: dict[str, Any] = {"start": START, "end": END, "pad": PAD}

    prefix = model.encode(features)["prefix"]

    def generate(beams: int) -> Tensor:
        start = network.get_input_embeddings()(torch.full((images, 1), START))
        lengths = {"max_new_tokens": LENGTH + 1, "min_new_tokens": LENGTH, "num_beams": beams}
        ending = {"eos_token_id": END, "forced_eos_token_id": END, "pad_token_id": PAD}
        options = {"suppress_tokens": [PAD, START], "do_sample": False, **ending}
        read = torch.cat([prefix, start], dim=1)
        mask = torch.ones(read.shape[:2], dtype=torch.int64)
        written: Tensor = network.generate(inputs_embeds=read, attention_mask=mask, **lengths, **options)
        return written

    def search(beams: int) -> list[Any]:
        memory = model.encode(features)
        limits: dict[str, Any] = {**special, "forbidden": [], "min_length": LENGTH, "max_length": LENGTH}
        if beams == 1:
            return greedy(model, memory, **limits)
        return [best for best, *_ in beam_search(model, memory, beam_size=beams, **limits)]

    same = [[*hypothesis.tokens, END] for hypothesis in search(1)]
    assert generate(1).tolist() == same, "transformers writes other captions"
    seconds = best_seconds(
        {
            f"{name} {beams}": lambda form=form, beams=beams: form(beams)  # type: ignore[misc]
            for name, form in (("ours", search), ("theirs", generate))
            for beams in (1, 5)
        }
    )
    return {f"beam_{beams}": round(seconds[f"theirs {beams}"] / seconds[f"ours {beams}"], 2) for beams in (1, 5)}


def run(images: int) -> dict[str, Any]:
    """``speed`` is how many times faster ours is."""
    return {
        "training_one_caption": training(images, 1),
        "training_five_captions": training(images, 5),
        "decoding": decoding(images),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=8)
    print(json.dumps(run(parser.parse_args().images)))
