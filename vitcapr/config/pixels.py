"""Configuration of the stores of decoded pictures, and of their augmentation in training."""

from pydantic import Field

from vitcapr.config.base import Section


class PixelsConfig(Section):
    """Stores of decoded pictures, for models whose backbone is fine-tuned."""

    chunk: int = Field(64, ge=1)
    """Images per chunk of the store; 64 images of 224 x 224 take 9.6 MB."""


class AugmentationConfig(Section):
    """Random changes of the training pictures. A limit of 0 switches a change off."""

    probability: float = Field(0.5, ge=0, le=1)
    """Probability of rotation, brightness, hue and blur, each drawn independently."""
    rotation: float = Field(15.0, ge=0, le=180)
    """Maximum angle in degrees, in both directions; the picture is mirrored at its edges to fill the corners."""
    flip: float = Field(0.5, ge=0, le=1)
    """Probability of a left-right flip. Captions that say left or right become wrong."""
    vertical_flip: float = Field(0.0, ge=0, le=1)
    """Probability of a top-bottom flip."""
    brightness: float = Field(0.2, ge=0, lt=1)
    """Maximum relative change of the pixel values."""
    hue: float = Field(0.05, ge=0, le=0.5)
    """Maximum rotation of the hue, in turns of the colour circle. Keep it small, because captions name colours."""
    blur: float = Field(1.0, ge=0, le=10)
    """Maximum standard deviation of the Gaussian blur, in pixels."""
