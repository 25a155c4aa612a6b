import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=40, help="Of the campaign (marker torture).")
    parser.addoption("--seed", type=int, default=0, help="Of the campaign (marker torture).")
