"""Look the words of a vocabulary up in a word-vector file and write the embedding to start from."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.cli.parts.options import Log, Settings, VectorsFile, VocabularyFile
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.text import WordVectorsSettings
from vitcapr.files import atomic_path, write_json
from vitcapr.progress import Reporter
from vitcapr.text.word_vectors import VectorFile, initial_embedding


def main(
    settings: Settings,
    vocabulary: VocabularyFile,
    vectors: VectorsFile,
    output: Annotated[Path, typer.Option(help="The embedding matrix to write, .npy.")],
    coverage: Annotated[Path, typer.Option(help="How many words were found, JSON to write.")],
    log: Log = None,
) -> None:
    """Look the words of a vocabulary up in a word-vector file and write the embedding to start from."""
    options = parse_settings(WordVectorsSettings, settings).word_vectors
    with Reporter(log) as reporter:
        matrix, covered = initial_embedding(
            Vocabulary.read(vocabulary), VectorFile(vectors, options.dimension), seed=options.seed
        )
        with atomic_path(output) as temporary, temporary.open("wb") as stream:
            np.save(stream, matrix, allow_pickle=False)
        write_json(coverage, covered.as_dict())
        for line in covered.lines():
            reporter.line(line)


if __name__ == "__main__":
    launch(main)
