"""The files of the texts come back, and what does not fit is one line."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.formats.test_files import Format, check_change, check_file, save
from vitcapr.extensions.finetuning import text_files

TOKENIZER = Tokenizer(WordLevel({"dog": 0, "[UNK]": 1}, unk_token="[UNK]")).to_str()
READERS = {"english": {"tokenizer": TOKENIZER, "languages": ["en"], "pad": 0, "max_length": 16, "segments": False}}
TAGS = text_files.TagTable.of([[(0, 1, "DET"), (2, 5, "NOUN")], [], [(1, 2, "VERB")]])
FORMATS: dict[str, Format] = {
    "tokenizer": (Tokenizer.from_str(TOKENIZER), text_files.write_tokenizer, text_files.read_tokenizer),
    "readers": (READERS, text_files.write_tower_readers, text_files.read_tower_readers),
    "tags": (TAGS, save, text_files.TagTable.read),
}


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_comes_back_and_foreign_and_cut_files_are_refused(tmp_path: Path, name: str) -> None:
    check_file(tmp_path, FORMATS[name])


@pytest.mark.parametrize(
    ("old", "new", "message"), [('"pad": 0', '"pad": -1', "pad"), ('er": "', 'er": "{}', "english.tokenizer")]
)
def test_a_reader_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    check_change(tmp_path, FORMATS["readers"], old, new, message)
