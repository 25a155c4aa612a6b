from vitcapr.formats.tables import Table, row, to_markdown, to_page


def test_markdown(table: Table) -> None:
    assert to_markdown(table).splitlines() == [
        "### A & B",
        "",
        "Protocol: tok:ptb|refs:5,closest.",
        "",
        "| who | R@1 |",
        "| --- | ---: |",
        "| paper_1 [2] | 51.24 (50.1-52.3) [1] [2] |",
        "| a\\|\\<pad>, 5,000 | - |",
        "",
        "[1] first 100 %  ",
        "[2] second  ",
    ]


def test_a_bare_table_is_its_rows() -> None:
    assert to_markdown(Table("", ("a",), (row("`<b>`"),))) == "| a |\n| --- |\n| `<b>` |\n"


def test_a_page(table: Table) -> None:
    page = to_page([table, table], "Title", "Words.")
    assert page.startswith("## Title\n\nWords.\n\n### A & B\n")
    assert page.count(to_markdown(table)) == 2
