"""A small ViT trained from scratch on pictures whose objects are known patch by patch.

Dense supervision is what lets so small a set of pictures do: every patch says what it shows, of what colour and
texture, and how many of the kind there are; the words of the captions are found by the CLS vector, and by the patches
together, each word needing only the patches that show it.
"""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import ViTConfig, ViTModel

from vitcapr.encoders.devices import autocast, resolve_dtype
from vitcapr.extensions.demo.backbone_targets import AROUND, IGNORED, ObjectNames, Pixels, Targets
from vitcapr.extensions.demo.settings import TrainedBackboneConfig
from vitcapr.files import atomic_path, write_json
from vitcapr.progress import Reporter

BATCH, LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM, WARMUP = 32, 3e-3, 0.05, 1.0, 0.05
MEAN = STD = 0.5
WHITENED, WHITENING_FLOOR, POSITION_SCALE = 256, 1e-2, 0.5
# Four patches in five are background, and easy: they count this much in the loss, an object's patch counts 1.
BACKGROUND = 0.2


class SceneReader(nn.Module):
    """A ViT and linear heads on its last hidden state, in one product a side; only the ViT is kept."""

    def __init__(self, vit: ViTModel, names: ObjectNames) -> None:
        super().__init__()
        width = vit.config.hidden_size
        kinds, colors, words, counts = len(names.kinds), len(names.colors), len(names.words), names.most + 1
        self.vit = vit
        self.grid = vit.config.image_size // vit.config.patch_size
        self.of_patches = {"kind": kinds + 1, "color": colors + 1, "texture": len(names.textures) + 1}
        self.of_patches |= {"count": counts, "around": len(AROUND)}
        self.of_patches |= {"row": self.grid, "column": self.grid, "patch_words": words}
        self.of_cls = {"cls_words": words, "present": kinds * colors, "numbers": kinds * counts}
        self.counts = counts
        self.patches = nn.Linear(width, sum(self.of_patches.values()))
        self.cls = nn.Linear(width, sum(self.of_cls.values()))

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        """Return the logits of ``pixels: (B, 3, S, S)``, all float32.

        They are ``kind (B, P, K + 1)``, ``color (B, P, C + 1)``, ``texture (B, P, T + 1)``, ``count (B, P, n)``,
        ``around (B, P, 10)``, ``row`` and ``column (B, P, grid)``, ``patch_words`` and ``cls_words (B, W)``, ``present
        (B, K * C)``, ``numbers (B, K, n)``.
        """
        hidden = self.vit(pixel_values=pixels).last_hidden_state
        cls, patches = self.cls(hidden[:, 0]).float(), self.patches(hidden[:, 1:]).float()
        outputs = dict(zip(self.of_patches, patches.split(list(self.of_patches.values()), dim=-1), strict=True))
        outputs |= zip(self.of_cls, cls.split(list(self.of_cls.values()), dim=-1), strict=True)
        # A word is in the caption if some patch shows it: a smooth maximum over the patches.
        outputs["patch_words"] = outputs["patch_words"].logsumexp(dim=1) - math.log(patches.shape[1])
        outputs["numbers"] = outputs["numbers"].unflatten(-1, (-1, self.counts))
        return outputs


def loss_of(outputs: dict[str, Tensor], targets: dict[str, Tensor]) -> Tensor:
    """Return the weighted sum of the heads' losses, means over patches or images.

    Single targets have cross entropies. Several-of-many targets have binary cross entropies, summed over the classes
    and scaled down to the size of the others.
    """

    def choice(name: str, background: float = 1.0) -> Tensor:
        weight = torch.ones(outputs[name].shape[-1], device=outputs[name].device)
        weight[0] = background
        logits, target = outputs[name].flatten(0, 1), targets[name].flatten()
        if bool((target == IGNORED).all()):  # a mean over nothing would be a NaN
            return 0.0 * logits.sum()
        return functional.cross_entropy(logits, target, weight, ignore_index=IGNORED)

    def several(name: str, target: str) -> Tensor:
        return functional.binary_cross_entropy_with_logits(outputs[name], targets[target], reduction="sum")

    def where() -> Tensor:
        """Loss of the row and column of a patch, which the decoder must read from the patch itself."""
        images, patches, grid = outputs["row"].shape
        place = torch.arange(patches, device=outputs["row"].device).expand(images, patches)
        rows = functional.cross_entropy(outputs["row"].flatten(0, 1), (place // grid).flatten())
        return rows + functional.cross_entropy(outputs["column"].flatten(0, 1), (place % grid).flatten())

    images = len(targets["words"])
    is_object = targets["kind"] > 0
    around = functional.binary_cross_entropy_with_logits(
        outputs["around"], targets["around"], is_object[..., None].float().expand_as(targets["around"]), reduction="sum"
    ) / is_object.sum().clamp(min=1)
    looks = 2 * choice("kind", BACKGROUND) + choice("color", BACKGROUND) + 0.5 * choice("texture", BACKGROUND)
    words = several("patch_words", "words") + several("cls_words", "words")
    whole = several("present", "present") / 5 / images + choice("numbers")
    return looks + choice("count") + 1.5 * around + 0.5 * where() + words / 40 / images + whole


def right_and_counted(outputs: dict[str, Tensor], targets: dict[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the correct and the counted predictions for each accuracy.

    Kind, colour, texture and count are over the patches that show an object; words are those in most captions, present
    or wrongly seen (Jaccard index).
    """
    accuracies = {
        name: (outputs[name].argmax(-1) == targets[name], targets["kind"] > 0)
        for name in ("kind", "color", "texture", "count")
    }
    for name in ("cls_words", "patch_words"):
        predicted, true = outputs[name] > 0, targets["words"] > 0.5
        accuracies[name] = predicted & true, predicted | true
    return accuracies


def batches(
    pixels: Pixels, targets: Targets, order: npt.NDArray[np.int64], size: int, device: torch.device
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """Normalised pixels (B, 3, S, S) float32 and the targets of each batch of ``order``."""
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        images = torch.from_numpy(pixels[rows]).to(device).permute(0, 3, 1, 2).float()
        chosen = {name: torch.from_numpy(values[rows]).to(device) for name, values in targets.items()}
        yield (images / 255 - MEAN) / STD, chosen


def train_vit(
    train: tuple[Pixels, Targets],
    validation: tuple[Pixels, Targets],
    names: ObjectNames,
    training: TrainedBackboneConfig,
    reporter: Reporter,
    device: torch.device,
) -> tuple[ViTModel, list[dict[str, float]]]:
    """Train with AdamW and a cosine schedule after a short warm-up.

    Args:
        train: pictures (N, S, S, 3) uint8 and their targets; ``validation`` likewise, may be empty.

    Returns:
        The ViT of the last epoch, in float32 on the CPU; and of each epoch ``epoch, train_loss, validation_loss,
        learning_rate`` and the validation accuracies.
    """
    epochs, batch = training.epochs, BATCH
    dtype = resolve_dtype("auto", device)
    torch.manual_seed(training.seed)
    shuffle = np.random.default_rng(training.seed)
    config = ViTConfig(
        image_size=train[0].shape[1],
        patch_size=training.patch_size,
        hidden_size=training.hidden_size,
        num_hidden_layers=training.layers,
        num_attention_heads=training.heads,
        intermediate_size=4 * training.hidden_size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        # For so few tokens the plain products are twice as fast on a CPU as the fused kernel, backwards above all.
        attn_implementation="eager",
    )
    vit = ViTModel(config)
    start_from_patches(vit, train[0])
    model = SceneReader(vit, names).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    steps = epochs * math.ceil(len(train[0]) / batch)
    warmup = max(1, round(WARMUP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warmup, 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0)))),
    )
    history: list[dict[str, float]] = []
    with reporter.track("backbone", epochs * len(train[0]), "images") as tracker:
        note = ""
        for epoch in range(1, epochs + 1):
            model.train()
            order = shuffle.permutation(len(train[0]))
            total = 0.0
            for pixels, targets in batches(*train, order, batch, device):
                with autocast(device, dtype):
                    outputs = model(pixels)
                loss = loss_of(outputs, targets)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
                optimizer.step()
                schedule.step()
                total += float(loss.detach()) * len(pixels)
                tracker.advance(len(pixels), note)
            row = {"epoch": float(epoch), "train_loss": total / len(train[0])}
            row["learning_rate"] = float(schedule.get_last_lr()[0])
            row |= evaluate(model, validation, batch, device, dtype)
            history.append(row)
            note = f"epoch {epoch}, validation loss {row['validation_loss']:.3f}, kinds {row['kind']:.3f}"
    return model.vit.to("cpu"), history


@torch.no_grad()
def start_from_patches(vit: ViTModel, pixels: Pixels) -> None:
    """Begin with patch filters that whiten the patches of ``pixels`` and with positions that are waves.

    The filters are the leading principal components, each scaled to unit variance: fine detail, which tells the kinds
    apart, then weighs as much as the mean colour from the first step on. Positions are sines and cosines of row and
    column (Beyer et al. 2022, arXiv 2205.01580).
    """
    config = vit.config
    side, width = config.patch_size, config.hidden_size
    grid = config.image_size // side
    cut = pixels[:WHITENED].reshape(-1, grid, side, grid, side, 3).transpose(0, 1, 3, 5, 2, 4)
    patches = torch.from_numpy(cut.reshape(-1, 3 * side * side).astype(np.float32))
    patches = (patches / 255 - MEAN) / STD
    mean = patches.mean(dim=0)
    variances, directions = torch.linalg.eigh((patches - mean).T @ (patches - mean) / len(patches))
    keep = min(width, len(variances))
    scale = (variances[-keep:].clamp(min=0) + WHITENING_FLOOR).rsqrt()
    filters = torch.zeros(width, len(mean))
    filters[:keep] = (directions[:, -keep:] * scale).T.flip(0)
    projection = vit.embeddings.patch_embeddings.projection
    projection.weight.copy_(filters.view_as(projection.weight))
    projection.bias.copy_(-filters @ mean)

    quarter = width // 4
    angles = torch.arange(grid)[:, None] * math.pi / grid * (torch.arange(quarter) + 1) / 2
    waves = torch.cat([angles.sin(), angles.cos()], dim=1)
    table = torch.zeros(grid, grid, width)
    table[:, :, : 2 * quarter] = waves[:, None]
    table[:, :, 2 * quarter : 4 * quarter] = waves[None]
    vit.embeddings.position_embeddings[0, 1:].copy_(POSITION_SCALE * table.view(grid * grid, width))


@torch.no_grad()
def evaluate(
    model: SceneReader, data: tuple[Pixels, Targets], batch: int, device: torch.device, dtype: torch.dtype
) -> dict[str, float]:
    """``validation_loss`` and the accuracies of :func:`right_and_counted`; nan where there is nothing to count."""
    model.eval()
    right: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    total, number = 0.0, len(data[0])
    for pixels, targets in batches(*data, np.arange(number), batch, device):
        with autocast(device, dtype):
            outputs = model(pixels)
        total += float(loss_of(outputs, targets)) * len(pixels)
        for name, (is_right, counts) in right_and_counted(outputs, targets).items():
            right[name] += int((is_right & counts).sum())
            counted[name] += int(counts.sum())
    shares = {name: right[name] / count if count else math.nan for name, count in counted.items()}
    return {"validation_loss": total / number if number else math.nan} | shares


def save_backbone(vit: ViTModel, directory: Path) -> None:
    """Write ``config.json``, ``model.safetensors`` and ``preprocessor_config.json`` as transformers reads them."""
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    config = vit.config.to_dict() | {"architectures": ["ViTModel"]}
    config.pop("_name_or_path", None)
    write_json(directory / "config.json", config)
    weights = {name: value.detach().contiguous() for name, value in vit.state_dict().items()}
    with atomic_path(directory / "model.safetensors") as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})
    size = vit.config.image_size
    write_json(
        directory / "preprocessor_config.json",
        {
            "image_processor_type": "ViTImageProcessor",
            "do_resize": True,
            "size": {"height": size, "width": size},
            "resample": 2,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": [MEAN] * 3,
            "image_std": [STD] * 3,
        },
    )
