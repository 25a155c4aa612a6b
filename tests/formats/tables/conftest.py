import pytest

from vitcapr.formats.tables import Cell, Table


@pytest.fixture
def table() -> Table:
    """With characters that formats take for their own."""
    return Table(
        "A & B",
        ("who", "R@1"),
        (
            (Cell("paper_1", notes=(2,)), Cell("51.24", "50.1", "52.3", (1, 2))),
            (Cell("a|<pad>, 5,000"), Cell("-")),
        ),
        caption="Protocol: tok:ptb|refs:5,closest.",
        notes=("first 100 %", "second"),
        name="t",
    )
