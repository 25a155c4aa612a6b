import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from vitcapr.formats.tables import Table, escape, to_document, to_latex


def test_a_booktabs_float(table: Table) -> None:
    lines = to_latex(table).splitlines()
    assert lines[0] == r"\begin{table*}[tbp]"
    assert lines[-1] == r"\end{table*}"
    assert r"\caption{A \& B. Protocol: tok:ptb\textbar{}\allowbreak{}refs:5,\allowbreak{}closest.}" in lines
    body = lines[lines.index(r"\begin{tabular}{lr}") + 1 : lines.index(r"\end{tabular}}")]
    assert body == [
        r"\toprule",
        r"who & R@1 \\",
        r"\midrule",
        r"paper\_1\textsuperscript{2} & 51.24 (50.1-52.3)\textsuperscript{1,2} \\",
        r"a\textbar{}\allowbreak{}\textless{}pad\textgreater{}, 5,000 & - \\",
        r"\bottomrule",
    ]
    assert r"\par\footnotesize\raggedright\textsuperscript{1} first 100 \%" in lines


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escaped_text_holds_no_command_of_its_own(text: str) -> None:
    """What remains after our own commands and escaped characters is plain; braces balance."""
    escaped = escape(text)
    known = r"\\(text(backslash|asciitilde|asciicircum|less|greater|bar|quotedbl|asciigrave)|allowbreak)\{\}"
    rest = re.sub(r"\\[{}$&#_%]", "", re.sub(known, "", escaped))
    assert not set(rest) & set('\\{}$&#_%~^<>|"`')


def is_sound(source: str) -> bool:
    """Environments and braces open and close in order."""
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", source):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    bare = re.sub(r"\\[{}\\]", "", source)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return not opened and depth == 0


def test_the_document_loads_the_packages_that_it_uses(table: Table) -> None:
    source = to_document([table, replace(table, name="u", columns=("a ± 1", "b → c"))], "A_B")
    assert is_sound(source)
    assert not is_sound(source.replace(r"\end{tabular}", ""))
    for package in ("booktabs", "graphicx", "fontenc", "textcomp"):
        assert re.search(rf"\\usepackage(\[.*\])?\{{{package}\}}", source)
    assert re.findall(r"\\label\{(.*)\}", source) == ["tab:t", "tab:u"]
    assert r"a $\pm$ 1 & b $\rightarrow$ c" in source
    assert source.isascii()
