import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.base import Caption
from vitcapr.metrics.java import meteor_statistics, tokenize

AWKWARD = [
    'He said "hello" to the dog\'s owner',
    "a caption ||| with METEOR's separator|||inside",
    "back \\ slash \\n and \\u0041 and $HOME `ls`",
    "über naïve café 猫 \U0001f600",
    "tab\there, 3.5 meters; 50% (or so) -- well... [yes] {no} <unk>",
    " - ",
]
CAPTIONS = [Caption("7.jpg", "a dog"), Caption("8.jpg", "a cat")]
STATISTICS = " ".join(["1.0"] * java.METEOR_STATISTICS)


def is_running(process: str) -> bool:
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.usefixtures("java_on_path")
def test_tokens_equal_those_of_pycocoevalcap() -> None:
    ours = tokenize([Caption("1", text) for text in AWKWARD], timeout=300)
    theirs = PTBTokenizer().tokenize({number: [{"caption": text}] for number, text in enumerate(AWKWARD)})
    assert ours == [theirs[number][0] for number in range(len(AWKWARD))]


def test_separator_does_not_reach_meteor(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    given = tmp_path / "given.txt"
    fake_java(f"cat > {given}; echo {STATISTICS}")
    assert meteor_statistics([Caption("1", "a ||| b|||c")], [["d ||| e", "f"]], timeout=20) == [[1.0] * 23]
    assert given.read_text() == "SCORE ||| d e ||| f ||| a b c\n"


def test_a_slow_program_that_goes_on_answering_is_waited_for(fake_java: Callable[[str], None]) -> None:
    """It takes longer than the timeout in all."""
    fake_java("for word in a b c d; do sleep 0.7; echo $word; done")
    assert tokenize([Caption(word, word) for word in "abcd"], timeout=1) == list("abcd")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo a dog; sleep 600 & wait", r"gave no answer in 1 s \(image 8.jpg, caption 'a cat'\)"),
        ("echo Could not reserve enough space >&2; exit 3", r"failed with code 3 .*7\.jpg.*Could not reserve enough"),
        ("echo a dog", r"answered 1 lines for 2 captions \(image 8.jpg"),
    ],
)
def test_tokenizer_that_misbehaves_names_the_caption(
    fake_java: Callable[[str], None], script: str, problem: str
) -> None:
    fake_java(script)
    with pytest.raises(UserError, match=f"PTB tokenizer {problem}"):
        tokenize(CAPTIONS, timeout=1)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 0", "ended early"),
        ("echo Error: specify hypothesis", "answered 'Error: specify hypothesis'"),
        ("echo 1.0 2.0", "answered '1.0 2.0'"),
    ],
)
def test_meteor_that_misbehaves_names_the_caption(fake_java: Callable[[str], None], script: str, problem: str) -> None:
    fake_java(f"echo {STATISTICS}; {script}")
    with pytest.raises(UserError, match=rf"METEOR {problem} \(image 8.jpg, caption 'a cat'\)"):
        meteor_statistics(CAPTIONS, [["a"], ["b"]], timeout=1)


def test_a_stopped_scorer_leaves_no_process(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    fake_java(f"sleep 600 & echo $! > {ids}; echo $$ >> {ids}; wait")
    with pytest.raises(UserError):
        tokenize(CAPTIONS, timeout=2)
    started = ids.read_text().split()
    assert len(started) == 2
    while any(is_running(process) for process in started):  # a kill takes a moment; the test's own limit ends this
        time.sleep(0.05)
