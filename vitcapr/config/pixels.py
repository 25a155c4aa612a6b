"""How decoded pictures are stored, and how they are changed at random in training."""

from pydantic import Field

from vitcapr.config.base import Section


class PixelsConfig(Section):
    """Stores of decoded pictures, for models that are trained through their backbone."""

    chunk: int = Field(64, ge=1)
    """Images in one chunk of the store; 64 of 224 x 224 are 9.6 MB."""


class AugmentationConfig(Section):
    """Random changes of the training pictures; a limit of 0 switches a change off."""

    probability: float = Field(0.5, ge=0, le=1)
    """Of rotation, brightness, hue and blur, each on its own."""
    rotation: float = Field(15.0, ge=0, le=180)
    """Degrees to either side; what turns in from outside is the picture mirrored."""
    flip: float = Field(0.5, ge=0, le=1)
    """The probability of a mirror image, left-right; captions that say left or right then lie."""
    vertical_flip: float = Field(0.0, ge=0, le=1)
    """The probability of a picture upside down."""
    brightness: float = Field(0.2, ge=0, lt=1)
    """The largest share by which the values rise or fall."""
    hue: float = Field(0.05, ge=0, le=0.5)
    """The largest turn of the colour circle, in turns; captions name colours, so little is wise."""
    blur: float = Field(1.0, ge=0, le=10)
    """The largest standard deviation of the Gaussian, in pixels."""
