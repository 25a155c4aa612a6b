import gzip
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.caption_metric import Caption
from vitcapr.metrics.captions import spice
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
REFERENCES = [["the dog"], ["the cat", "a kitten"]]
STATISTICS = " ".join(["1.0"] * java.METEOR_STATISTICS)


def is_running(process: str) -> bool:
    try:
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.usefixtures("java_on_path")
def test_tokens_equal_those_of_pycocoevalcap() -> None:
    ours = tokenize([Caption("1", text) for text in AWKWARD])
    theirs = PTBTokenizer().tokenize({number: [{"caption": text}] for number, text in enumerate(AWKWARD)})
    assert ours == [theirs[number][0] for number in range(len(AWKWARD))]


def test_paths_with_spaces_and_accents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """METEOR encodes the path of its table twice, and Java in the locale C reads no name beyond ASCII."""
    folder = tmp_path / "my josé #1%20"
    for name in ("tokenizer/stanford-corenlp-3.4.1.jar", "meteor/meteor-1.5.jar"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(java.JARS / name, folder / name)
    table = folder / "paraphrases.gz"
    table.write_bytes(gzip.compress(b"0.5\nautomobile\nhorseless carriage\n"))
    monkeypatch.setattr(java, "JARS", folder)
    monkeypatch.setattr(java, "_METEOR", str(folder / "meteor/meteor-1.5.jar"))
    monkeypatch.setattr(java, "_PARAPHRASES", table)
    monkeypatch.setenv("LC_ALL", "C")
    words = tokenize([Caption("1", "an Automobile."), Caption("1", "a horseless carriage")])
    assert words == ["an automobile", "a horseless carriage"]
    (counts,) = meteor_statistics([Caption("1", words[0])], [words[1:]])
    assert counts[21:] == [1, 2]  # The paraphrase: one word of the caption, two of the reference.


def test_separator_does_not_reach_meteor(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    given = tmp_path / "given.txt"
    fake_java(f"cat > {given}; echo {STATISTICS}")
    assert meteor_statistics([Caption("1", "a ||| b|||c")], [["d ||| e", "f"]]) == [[1.0] * 23]
    assert given.read_text() == "SCORE ||| d e ||| f ||| a b c\n"


def test_a_slow_program_that_goes_on_answering_is_waited_for(fake_java: Callable[[str], None]) -> None:
    """It takes longer than the timeout in all."""
    fake_java("for word in a b c d; do sleep 0.7; echo $word; done")
    assert tokenize([Caption(word, word) for word in "abcd"]) == list("abcd")


METEOR = f"echo {STATISTICS}; "


@pytest.mark.parametrize(
    ("score", "script", "problem"),
    [
        ("tokenize", "echo Could not reserve space >&2; exit 3", "failed with code 3 .*7.jpg.*Could not reserve space"),
        ("tokenize", "echo a dog", "answered 1 lines for 2 captions .image 8.jpg"),
        ("meteor", f"{METEOR} exit 0", "METEOR ended early .image 8.jpg, caption 'a cat'"),
        ("meteor", f"{METEOR} echo Error: specify hypothesis", "answered 'Error: specify hypothesis' .image 8.jpg"),
        ("meteor", f"{METEOR} echo 1.0 2.0", "answered '1.0 2.0' .image 8.jpg"),
        ("spice", "exit 0", "SPICE wrote nothing .image 7.jpg"),
        ("filter", "exit 3", "METEOR's FilterParaphrase failed with code 3 .*table.gz"),
    ],
)
def test_a_program_that_misbehaves_names_the_caption(
    fake_java: Callable[[str], None], score: str, script: str, problem: str
) -> None:
    fake_java(script)
    scores = {
        "tokenize": lambda: tokenize(CAPTIONS),
        "meteor": lambda: meteor_statistics(CAPTIONS, REFERENCES),
        "spice": lambda: spice.spice(CAPTIONS, REFERENCES),
        "filter": lambda: java.filter_paraphrases(["a dog"], Path("table.gz")),
    }
    with pytest.raises(UserError, match=problem):
        scores[score]()


def test_a_silent_program_is_stopped_and_leaves_no_process(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    fake_java(f"echo a dog; sleep 600 & echo $! > {ids}; echo $$ >> {ids}; wait")
    with pytest.raises(UserError, match=r"PTB tokenizer gave no answer in 1 s \(image 8.jpg, caption 'a cat'\)"):
        tokenize(CAPTIONS)
    started = ids.read_text().split()
    assert len(started) == 2
    while any(is_running(process) for process in started):  # a kill takes a moment; the test's own limit ends this
        time.sleep(0.05)


ANSWER = """[{"image_id": 1, "scores": {"All": {"f": 0.5}}}, {"image_id": 0, "scores": {"All": {"f": 0.25}}}]"""


def test_missing_models_are_an_error_that_says_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spice, "JARS", tmp_path)
    with pytest.raises(UserError, match=r"384 MB.*get_stanford_models"):
        spice.check_installed()
    (tmp_path / "spice/lib").mkdir(parents=True)
    for name in ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar"):
        (tmp_path / "spice/lib" / name).touch()
    spice.check_installed()


def test_scores_go_to_their_images(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    """The request comes after the jar; the last file named is the one to answer in."""
    asked = tmp_path / "asked.json"
    fake_java(
        'while [ "$1" != "-jar" ]; do shift; done\n'
        f'cp "$3" {asked}; shift 3\n'
        f'while [ "$1" != "-out" ]; do shift; done; echo \'{ANSWER}\' > "$2"'
    )
    measure = spice.spice(CAPTIONS, REFERENCES)
    assert measure.per_image.tolist() == [0.25, 0.5]
    assert '"test": "a cat", "refs": ["the cat", "a kitten"]' in asked.read_text()


def test_the_release_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its models are a download, so that it ends where it loads them; an older Stanford jar stands in for its classes.

    Without the opened packages it ends before, as its serializer is made: java.lang.ExceptionInInitializerError.
    """
    package, copy = java.JARS / "spice", tmp_path / "spice"
    (copy / "lib").mkdir(parents=True)
    shutil.copy(package / "spice-1.0.jar", copy)  # Java looks for the other jars beside the real file
    for file in (package / "lib").glob("*.jar"):
        (copy / "lib" / file.name).symlink_to(file)
    missing = copy / "lib" / "stanford-corenlp-3.6.0.jar"
    if missing.exists():
        pytest.skip("the models are here")
    missing.symlink_to(java.JARS / "tokenizer" / "stanford-corenlp-3.4.1.jar")
    monkeypatch.setattr(java, "JARS", tmp_path)
    with pytest.raises(UserError, match=r"SPICE .*it said 'Parsing reference captions'"):
        java.run_spice('[{"image_id": 0, "test": "a dog", "refs": ["the dog"]}]', CAPTIONS[0])
