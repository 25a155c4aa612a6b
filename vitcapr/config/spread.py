"""Which trained models are the same but for their seed."""

from vitcapr.config.base import Section


class SeededModel(Section):
    of: str
    """The definition it was made from."""
    vary: str
    """What else was varied in it, as its name says; empty for nothing."""
    seed: int


class SpreadSettings(Section):
    """What the stage ``spread`` reads."""

    models: dict[str, SeededModel]
    """By the names under which they are scored."""
