"""The decodings that an experiment used with a captioner, from its run records."""

from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from vitcapr.config.base import parse
from vitcapr.config.decoding import DecodingConfig
from vitcapr.errors import UserError
from vitcapr.formats.model import WEIGHTS
from vitcapr.pipeline.records import RUNS, Run, read_run


def decodings_of(captioner: Path) -> dict[str, DecodingConfig]:
    """The decodings of the captions that the experiment generated with this captioner, by name.

    Args:
        captioner: ``results/<experiment>/captioners/<name>``.
    """
    found: dict[str, DecodingConfig] = {}
    for path in decoding_records(captioner):
        with suppress(UserError):
            run = read_run(path)
            found[_decoding_name(run)] = parse(DecodingConfig, run.facts["settings"].get("decoding", {}), path)
    return found


def decoding_records(captioner: Path) -> list[Path]:
    """The run records of the captions that the experiment generated with this captioner.

    A damaged record is one line where the record is asked for. Here it is left out.
    """
    folder = captioner.resolve()
    experiment, weights = folder.parent.parent, f"captioners/{folder.name}/{WEIGHTS}"
    found = []
    for path in sorted((experiment / RUNS).glob("decode*/*.json")):
        with suppress(UserError):
            run = read_run(path)
            if weights in map(run.place, run.inputs):
                found.append(path)
    return found


def choose_decoding(captioner: Path, name: str | None, **changes: Any) -> tuple[str, DecodingConfig]:
    """The decoding for new images, and its name.

    Args:
        captioner: the folder of the captioner.
        name: None for the experiment's decoding with the widest beam, or the defaults if the experiment has none. A
            decoding that samples is taken only where no other is.
        changes: values that differ from that decoding; None for no change. More candidates widen the beam, unless its
            size is given too. The size of a beam replaces sampling.

    Raises:
        UserError: the experiment has no such decoding, or the values do not agree.
    """
    known = decodings_of(captioner)
    if name is None:
        name = max(sorted(known), key=lambda one: (known[one].sampling is None, known[one].beam_size), default="")
    elif name not in known:
        remedy = f"it has {', '.join(sorted(known))}" if known else "leave out --decoding"
        raise UserError(f"the experiment has no decoding '{name}' of this captioner", where=captioner, remedy=remedy)
    values = known.get(name, DecodingConfig()).canonical()
    values |= {key: value for key, value in changes.items() if value is not None}
    if changes.get("beam_size") is None:
        if "beam_size" in values:
            values["beam_size"] = max(values["beam_size"], values["n_best"])
    else:
        values["sampling"] = None
        if changes.get("n_best") is None:
            values["n_best"] = min(values["n_best"], values["beam_size"])
    return name, parse(DecodingConfig, values, where=f"decoding {name}" if name else "decoding")


def _decoding_name(run: Run) -> str:
    """``beam`` of ``captions/attention/beam/test/captions.json``."""
    return PurePosixPath(next(iter(run.outputs))).parts[-3]
