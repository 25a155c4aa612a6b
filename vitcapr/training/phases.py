"""The values of a phase of training that depend on its length; without torch, because Snakemake reads them."""

from vitcapr.config.training import CaptionerPhaseConfig, PhaseConfig


def warmup_steps(phase: PhaseConfig, steps: int) -> int:
    """Return the number of warm-up steps in a phase of ``steps`` steps."""
    return min(100, steps // 10) if phase.warmup_steps is None else phase.warmup_steps


def images_in_batch(phase: CaptionerPhaseConfig, images: int) -> int:
    """Return the number of images in a batch, for a training split of ``images`` images."""
    return phase.batch_images or min(32, max(4, images // 8))
