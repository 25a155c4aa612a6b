import pytest


@pytest.fixture(autouse=True)
def saves_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of a short training is saved in the middle of an epoch."""
    monkeypatch.setattr("vitcapr.training.loop._SAVE_STEPS", 2)
