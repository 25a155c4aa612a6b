"""The arithmetic of experiments/blip2-flickr30k.yaml, counted on the shapes of Salesforce/blip2-flan-t5-xl.

Torch counts the products of the frozen encoders on empty tensors; a multiplication and an addition are two operations.
Prints JSON: operations of an image, of a caption and of the data set, and the minutes that these take on a device of
the given peak. The device reaches the given share of its peak.

    python -m benchmarks.blip2_cost
    python -m benchmarks.blip2_cost --peak 165 --share 0.35
"""

import argparse
import json

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import Blip2Config, Blip2ForConditionalGeneration, T5Config

IMAGES = 31_783
FLAN_T5_XL = {
    "d_model": 2048,
    "d_kv": 64,
    "d_ff": 5120,
    "num_layers": 24,
    "num_heads": 32,
    "feed_forward_proj": "gated-gelu",
}


def counted(tokens: int) -> tuple[float, float]:
    """The operations of one image and of one caption of so many tokens. The vision model and the Q-Former are those of
    transformers' defaults, which are the checkpoint's."""
    with torch.device("meta"):
        model = Blip2ForConditionalGeneration(Blip2Config(text_config=T5Config(**FLAN_T5_XL).to_dict()))
    model.eval().requires_grad_(False)
    with FlopCounterMode(display=False) as image:
        seen = model.vision_model(torch.empty(1, 3, 224, 224, device="meta")).last_hidden_state
        model.qformer(query_embeds=model.query_tokens, encoder_hidden_states=seen)
    with FlopCounterMode(display=False) as caption:
        model.language_model.get_encoder()(input_ids=torch.zeros(1, tokens, dtype=torch.long, device="meta"))
    return image.get_total_flops(), caption.get_total_flops()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=24, help="tokens of a caption, padding of its batch included")
    parser.add_argument("--peak", type=float, default=312.0, help="the device's peak, in TFLOP/s")
    parser.add_argument("--share", type=float, default=0.35, help="share of the peak that is assumed")
    given = parser.parse_args()
    image, caption = counted(given.tokens)
    total = IMAGES * (image + caption)
    print(
        json.dumps(
            {
                "image_gflop": round(image / 1e9, 1),
                "caption_gflop": round(caption / 1e9, 1),
                "total_pflop": round(total / 1e15, 1),
                "minutes": round(total / (given.peak * 1e12 * given.share) / 60, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
