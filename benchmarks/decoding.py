"""Captions a second: greedy and beam search, against a plain batched prototype and the tests' blackboard version.

A captioner of the size of the Flickr8k experiments with random weights: 196 patches of 192 numbers, 3,000 words,
captions of about ten words. The prototype decodes the same batches with the formula of the attention written out and
every caption kept to the end of its batch. Each takes three turns in one process, and the best turn counts. The
reference runs once.

    python -m benchmarks.decoding --images 256
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.decoding.reference_beam import reference_beam_search
from vitcapr.config.captioner import PatchAttentionConfig
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.models.architectures.patch_attention import PatchAttentionCaptioner
from vitcapr.models.interface import Memory, State, Step

VOCABULARY, PATCHES, WIDTH, BATCH = 3000, 196, 192, 64
PAD, START, END, UNKNOWN = 0, 1, 2, 3
TYPICAL_LENGTH, LONGEST = 10, 35


def lean_to_the_end(logits: Tensor, words: Tensor) -> None:
    """Raise the end's logit of (..., V), in place, by how many ``words``, (...), a caption has."""
    logits[..., END] += 3 * (words - TYPICAL_LENGTH) + logits.amax(-1)


class EndingCaptioner(PatchAttentionCaptioner):
    """Random weights never end a caption at a natural length, so the end becomes likelier word by word."""

    def initial_state(self, memory: Memory) -> State:
        state = super().initial_state(memory)
        return {**state, "words": state["hidden"].new_zeros(state["hidden"].shape[:2])}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        step = super().step(memory, state, tokens)
        lean_to_the_end(step.logits, state["words"])
        return step._replace(state={**step.state, "words": state["words"] + 1})


def captioner() -> EndingCaptioner:
    """Weights drawn large, so that the choices of words are about as sharp as those of a trained captioner."""
    torch.manual_seed(0)
    settings = {"embedding_dim": 256, "attention_dim": 256, "scoring": "tanh", "init_from_cls": False}
    arguments = PatchAttentionConfig(backbone="vit", **settings).described()  # type: ignore[arg-type]
    model = EndingCaptioner(VOCABULARY, WIDTH, **arguments).eval()
    with torch.no_grad():
        model.words.weight.mul_(12)
        model.reader.embedding.weight.mul_(2)
    return model


def plain_step(model: EndingCaptioner, memory: Memory, state: State, tokens: Tensor) -> Step:
    """A word of every hypothesis, (R,), each row with the patches of its image; equation 2 as it is written."""
    hidden, cell = model.reader.advance(tokens, state["hidden"], state["cell"])
    scores = torch.tanh(memory["keys"] + model.word_key(hidden)[:, None]) @ model.score
    context = (torch.softmax(scores, dim=-1)[:, None] @ memory["values"])[:, 0]
    logits = model.words(torch.cat([context, hidden], dim=-1))
    lean_to_the_end(logits, state["words"])
    logits[:, [PAD, START, UNKNOWN]] = -torch.inf
    return Step(logits, {"hidden": hidden, "cell": cell, "words": state["words"] + 1}, None)


def plain_start(model: EndingCaptioner, patches: Tensor, beam: int) -> tuple[Memory, State]:
    values = model.patch(patches).repeat_interleave(beam, 0)
    zeros = values.new_zeros(len(values), model.reader.lstm.hidden_size)
    memory = {"values": values, "keys": model.patch_key(values)}
    return memory, {"hidden": zeros, "cell": zeros, "words": zeros[:, 0]}


def plain_greedy(model: EndingCaptioner, patches: Tensor, max_length: int) -> list[list[int]]:
    memory, state = plain_start(model, patches, 1)
    tokens = torch.full((len(patches),), START)
    words, running = [], torch.ones(len(patches), dtype=torch.bool)
    for _ in range(max_length):
        step = plain_step(model, memory, state, tokens)
        state, tokens = step.state, step.logits.argmax(-1).where(running, END)
        words.append(tokens)
        running &= tokens != END
        if not running.any():
            break
    return [_until_end(caption) for caption in torch.stack(words, 1).tolist()]


def plain_beam(model: EndingCaptioner, patches: Tensor, max_length: int, beam: int) -> list[list[int]]:
    """Textbook beam search by log-probability: an ended hypothesis stays in the beam as it is."""
    memory, state = plain_start(model, patches, beam)
    images = len(patches)
    tokens = torch.full((images * beam,), START)
    scores = torch.full((images, beam), -torch.inf)
    scores[:, 0] = 0
    words, ended = torch.empty(images, beam, 0, dtype=torch.int64), torch.zeros(images, beam, dtype=torch.bool)
    for _ in range(max_length):
        step = plain_step(model, memory, state, tokens)
        log_probs = torch.log_softmax(step.logits, -1).view(images, beam, -1)
        stay = torch.full_like(log_probs[0, 0], -torch.inf)
        stay[END] = 0
        total = scores[..., None] + torch.where(ended[..., None], stay, log_probs)
        scores, order = total.flatten(1).topk(beam)
        parents, chosen = order // log_probs.shape[2], order % log_probs.shape[2]
        words = torch.cat([words.gather(1, parents[..., None].expand_as(words)), chosen[..., None]], dim=2)
        ended = ended.gather(1, parents) | (chosen == END)
        rows = (parents + beam * torch.arange(images)[:, None]).flatten()
        state, tokens = {name: value[rows] for name, value in step.state.items()}, chosen.flatten()
        if ended.all():
            break
    return [_until_end(caption) for caption in words[:, 0].tolist()]


def kept_aside_beam(model: EndingCaptioner, patches: Tensor, max_length: int, beam: int) -> list[list[int]]:
    """The method of ImageCaptioning.pytorch's beam search (R. Luo, ``CaptionModel.py``), in our words.

    Every step sorts all continuations of an image. A hypothesis that ends is kept aside in a list of its image, and its
    place in the beam is lost only at the next step. The search goes on to the last step. Theirs also keeps the
    log-probabilities of all words at every step, which is left out.
    """
    memory, state = plain_start(model, patches, beam)
    images = len(patches)
    tokens = torch.full((images * beam,), START)
    scores = torch.full((images, beam), -torch.inf)
    scores[:, 0] = 0
    words = torch.empty(images, beam, 0, dtype=torch.int64)
    done: list[list[tuple[float, list[int]]]] = [[] for _ in range(images)]
    for length in range(1, max_length + 1):
        step = plain_step(model, memory, state, tokens)
        log_probs = torch.log_softmax(step.logits, -1).view(images, beam, -1)
        ordered, order = (scores[..., None] + log_probs).flatten(1).sort(dim=1, descending=True)
        scores, order = ordered[:, :beam], order[:, :beam]
        parents, chosen = order // log_probs.shape[2], order % log_probs.shape[2]
        words = torch.cat([words.gather(1, parents[..., None].expand_as(words)), chosen[..., None]], dim=2)
        ended = (chosen == END) | (length == max_length)
        for image, place in ended.nonzero().tolist():
            done[image].append((scores[image, place].item(), words[image, place].tolist()))
        scores = scores.masked_fill(ended, -torch.inf)
        rows = (parents + beam * torch.arange(images)[:, None]).flatten()
        state, tokens = {name: value[rows] for name, value in step.state.items()}, chosen.flatten()
    return [_until_end(max(hypotheses)[1]) for hypotheses in done]


def _until_end(words: list[int]) -> list[int]:
    return words[: words.index(END)] if END in words else words


def seconds_each(captions: Callable[[], int]) -> tuple[float, float]:
    """Wall-clock and processor seconds for one caption."""
    wall, processor = time.perf_counter(), time.process_time()
    written = captions()
    return (time.perf_counter() - wall) / written, (time.process_time() - processor) / written


@torch.inference_mode()
def run(images: int = 128, reference_images: int = 4) -> dict[str, Any]:
    """The report; ``X_over_Y`` is how many times faster X is than Y, in processor time."""
    model = captioner()
    draw = torch.Generator().manual_seed(1)
    patches = torch.randn(images, PATCHES, WIDTH, generator=draw)
    common: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": LONGEST}

    def in_batches(search: Callable[[Memory], list[Any]]) -> Callable[[], int]:
        return lambda: sum(len(search(model.encode({"patches": part}))) for part in patches.split(BATCH))

    def reference() -> int:
        memory = model.encode({"patches": patches[:reference_images]})
        return len(reference_beam_search(model, memory, **common, beam_size=5))

    def beam(**options: Any) -> Callable[[], int]:
        return in_batches(lambda memory: beam_search(model, memory, **common, beam_size=5, **options))

    forms = {
        "greedy": in_batches(lambda memory: greedy(model, memory, **common)),
        "beam_5": beam(),
        "beam_5_five_captions": beam(n_best=5),
        "beam_5_attention": beam(keep_attention=True),
        "beam_5_normalised": beam(length_penalty=0.7),
        "beam_5_all_three": beam(n_best=5, keep_attention=True, length_penalty=0.7),
        "plain_greedy": lambda: sum(len(plain_greedy(model, part, LONGEST)) for part in patches.split(BATCH)),
        "plain_beam_5": lambda: sum(len(plain_beam(model, part, LONGEST, 5)) for part in patches.split(BATCH)),
    }
    first = model.encode({"patches": patches[:BATCH]})
    same = [list(hypothesis.tokens) for hypothesis in greedy(model, first, **common)]
    assert plain_greedy(model, patches[:BATCH], LONGEST) == same, "the prototype writes other captions"
    best = [list(hypotheses[0].tokens) for hypotheses in beam_search(model, first, **common, beam_size=5)]
    assert plain_beam(model, patches[:BATCH], LONGEST, 5) == best, "the prototype's beam writes other captions"
    turns = [{name: seconds_each(form) for name, form in forms.items()} for _ in range(3)]
    times = {name: min(turn[name] for turn in turns) for name in forms}
    times["reference_beam_5"] = seconds_each(reference)
    report: dict[str, Any] = {"images": images, "threads": torch.get_num_threads()}
    for name, (wall, processor) in times.items():
        report[name] = {"captions_per_second": 1 / wall, "processor_ms_per_caption": 1000 * processor}
    for ours, theirs in (("greedy", "plain_greedy"), ("beam_5", "plain_beam_5"), ("beam_5", "reference_beam_5")):
        report[f"{ours}_over_{theirs}"] = times[theirs][1] / times[ours][1]
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=128)
    print(json.dumps(run(parser.parse_args().images)))
