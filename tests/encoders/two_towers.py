"""Random checkpoints of pictures and text, saved with their real processors, as they would lie on the hub."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import (
    BertTokenizer,
    Blip2Config,
    Blip2ForConditionalGeneration,
    Blip2ForImageTextRetrieval,
    Blip2Processor,
    Blip2QFormerConfig,
    Blip2VisionConfig,
    CLIPConfig,
    CLIPModel,
    CLIPProcessor,
    CLIPTokenizer,
    PreTrainedModel,
    SiglipConfig,
    SiglipModel,
    T5Config,
    T5Tokenizer,
)
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from vitcapr.encoders.text_encoders import TextRecipe

WORDS = ["a", "dog", "cat", "runs", "sits", "on", "the", "grass", "red", "."]
TEXTS = ["a dog runs on the grass .", "cat", "the cat sits", "a red red red dog runs and sits on a red cat ."]
SIZE, PATCH, QUERIES, ROOM = 16, 8, 3, 24
SHAPE = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
PICTURES = {"image_size": SIZE, "patch_size": PATCH}


def load_text(folder: Path, pool: Any = "mean", max_length: int = ROOM, output: Any = "hidden") -> Any:
    options = {"revision": "main", "dtype": "float32", "device": torch.device("cpu")}
    return TextRecipe(str(folder), pool=pool, max_length=max_length, output=output, **options).load()


def clip_tokenizer() -> CLIPTokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    return CLIPTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, merges=[])


def t5_tokenizer() -> T5Tokenizer:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0), ("▁", -5.0), *((f"▁{word}", -2.0) for word in WORDS)]
    return T5Tokenizer(vocab=pieces, extra_ids=0)


def bert_tokenizer() -> BertTokenizer:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    return BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})


def save(model: PreTrainedModel, processor: Any, folder: Path, **options: Any) -> Path:
    """Every weight is redrawn: as initialised, half of them are zeros and ones, which hide mistakes."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(folder, **options)
    for part in processor:
        part.save_pretrained(folder)
    return folder


def clip(folder: Path, **options: Any) -> Path:
    tokenizer = clip_tokenizer()
    text = {**SHAPE, "vocab_size": len(tokenizer), "max_position_embeddings": ROOM}
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = CLIPConfig(
        text_config={**text, **ends, "pad_token_id": tokenizer.pad_token_id},
        vision_config={**SHAPE, **PICTURES},
        projection_dim=6,  # The towers have a default of their own, 512, which nothing reads.
    )
    images = CLIPImageProcessorPil(size={"shortest_edge": SIZE}, crop_size={"height": SIZE, "width": SIZE})
    return save(CLIPModel(config), [CLIPProcessor(images, tokenizer)], folder, **options)


def siglip(folder: Path, **options: Any) -> Path:
    text = {**SHAPE, "vocab_size": 16, "max_position_embeddings": ROOM, "projection_size": 8}
    config = SiglipConfig(text_config=text, vision_config={**SHAPE, **PICTURES})
    images = SiglipImageProcessorPil(size={"height": SIZE, "width": SIZE})
    return save(SiglipModel(config), [images, t5_tokenizer()], folder, **options)


def _blip2_config(**language: Any) -> Blip2Config:
    return Blip2Config(
        vision_config=Blip2VisionConfig(**SHAPE, **PICTURES).to_dict(),
        qformer_config=Blip2QFormerConfig(
            **SHAPE, vocab_size=16, max_position_embeddings=ROOM, use_qformer_text_input=not language
        ).to_dict(),
        text_config=language or None,
        num_query_tokens=QUERIES,
        image_text_hidden_size=6,
    )


def _blip2_processor(tokenizer: Any) -> Blip2Processor:
    return Blip2Processor(BlipImageProcessorPil(size={"height": SIZE, "width": SIZE}), tokenizer, QUERIES)


def blip2_t5(folder: Path, **options: Any) -> Path:
    """Like Salesforce/blip2-flan-t5-xl."""
    language = T5Config(
        vocab_size=16, d_model=8, d_kv=4, d_ff=16, num_layers=2, num_heads=2, decoder_start_token_id=0
    ).to_dict()
    model = Blip2ForConditionalGeneration(_blip2_config(**language))
    return save(model, [_blip2_processor(t5_tokenizer())], folder, **options)


def blip2_itm(folder: Path, **options: Any) -> Path:
    """Like Salesforce/blip2-itm-vit-g."""
    model = Blip2ForImageTextRetrieval(_blip2_config())
    return save(model, [_blip2_processor(bert_tokenizer())], folder, **options)


CHECKPOINTS = {"clip": clip, "siglip": siglip, "blip2_t5": blip2_t5, "blip2_itm": blip2_itm}
