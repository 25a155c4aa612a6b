"""Tiny random language models of transformers, with a tokenizer."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast


def tiny_network(kind: str = "llama", pieces: int = 11, **changes: Any) -> Any:
    """Two layers of width 8: rotary positions and shared key heads, or learnt positions."""
    torch.manual_seed(0)
    config: Any
    if kind == "llama":
        shape = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "initializer_range": 0.5}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
        config = LlamaConfig(**{"vocab_size": pieces, **shape, **heads, "tie_word_embeddings": True, **changes})
        made: Any = LlamaForCausalLM
    else:
        shape = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
        config, made = GPT2Config(**{"vocab_size": pieces, **shape, **changes}), GPT2LMHeadModel
    config._attn_implementation = "eager"
    return made(config).eval()


def save_language_model(folder: Path, texts: list[str], kind: str = "llama", **changes: Any) -> Path:
    """A checkpoint of a tiny language model whose tokenizer merges what is frequent in the texts."""
    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator(texts, vocab_size=300, min_frequency=2, special_tokens=["<s>", "</s>"])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, bos_token="<s>", eos_token="</s>")
    wrapped.save_pretrained(folder)
    tiny_network(kind, len(wrapped), **changes).save_pretrained(folder)
    return folder
