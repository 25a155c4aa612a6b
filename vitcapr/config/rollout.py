"""What the figure of attention roll-out reads: how figures are drawn, and the backbone that is looked into."""

from vitcapr.config.features import BackboneConfig
from vitcapr.config.figures import FigureSettings


class RolloutSettings(FigureSettings):
    """What the stage ``draw_rollout`` reads."""

    backbone: BackboneConfig
