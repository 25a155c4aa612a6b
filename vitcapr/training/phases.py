"""The values of a phase of training that depend on its length."""

from vitcapr.config.training import CaptionerPhaseConfig, PhaseConfig


def warmup_steps(phase: PhaseConfig, steps: int) -> int:
    """Return the steps of the warm-up of a phase of so many steps."""
    return min(100, steps // 10) if phase.warmup_steps is None else phase.warmup_steps


def images_in_batch(phase: CaptionerPhaseConfig, images: int) -> int:
    """Return the images in a batch, of so many training images."""
    return phase.batch_images or min(32, max(4, images // 8))
