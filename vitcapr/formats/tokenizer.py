"""``tokenizer.json``: a WordPiece tokenizer in the form of the library ``tokenizers``."""

from pathlib import Path

from tokenizers import Tokenizer

from vitcapr.errors import UserError
from vitcapr.files import read_file, write_text


def write_tokenizer(path: Path, tokenizer: Tokenizer) -> None:
    write_text(path, tokenizer.to_str(pretty=True) + "\n")


def read_tokenizer(path: Path) -> Tokenizer:
    """Raises:
    UserError: it is missing or no tokenizer.
    """
    try:
        return Tokenizer.from_buffer(read_file(path))
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the stage train_tokenizer") from error
    except Exception as error:  # The library raises nothing more special.
        remedy = "delete it and run the stage train_tokenizer"
        raise UserError(f"not a tokenizer: {str(error)[:120]}", where=path, remedy=remedy) from error
