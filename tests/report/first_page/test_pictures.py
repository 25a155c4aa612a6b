from types import SimpleNamespace

from vitcapr.report.first_page.pictures import CHANGED, SHOWN, changed_rows, choose_rows, mark_changes


def caption(text):
    return SimpleNamespace(caption=text, tokens=tuple(text.split()))


def test_the_rows_that_a_reranking_changed():
    ids = ["a", "b", "c"]
    beam = {name: caption("a red box") for name in ids}
    reranked = {**beam, "b": caption("a blue box")}
    written = {"m/beam": beam, "m/reranked": reranked, "m/greedy": {name: caption("box") for name in ids}}
    assert changed_rows([0, 1, 2], ids, written, {"m/reranked": "m/beam"}) == [1]
    assert changed_rows([0, 1, 2], ids, written, {}) == []


def test_some_of_the_pictures_are_of_changed_captions():
    rows, changed = list(range(100)), [7, 8, 9, 10, 11, 12]
    chosen, among = choose_rows(rows, changed, seed=0)
    assert (len(chosen), len(set(chosen)), among) == (SHOWN, SHOWN, CHANGED)
    assert len(set(chosen) & set(changed)) >= CHANGED
    assert chosen == sorted(chosen)
    assert choose_rows(rows, changed, seed=0) == (chosen, among)
    assert choose_rows(rows, changed, seed=1)[0] != chosen
    assert choose_rows([3, 5], [], seed=0) == ([3, 5], 0)
    assert choose_rows([3, 5], [3, 5], seed=0) == ([3, 5], 2)


def test_words_that_went_stand_before_words_that_came():
    def marked(before, after):
        return [(run.text, run.change) for run in mark_changes(before.split(), after.split())]

    assert marked("two red boxes on a mat", "two big blue boxes on a") == [
        *(("two", ""), ("red", "del"), ("big blue", "ins"), ("boxes on a", ""), ("mat", "del")),
    ]
    assert marked("x", "") == [("x", "del")]
    assert marked("", "x") == [("x", "ins")]
    assert marked("a b", "a b") == [("a b", "")]
