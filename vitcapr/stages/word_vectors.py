from typing import Any

from vitcapr.config.base import StageSettings, find_data
from vitcapr.config.features import WordVectorsConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class WordVectorsSettings(StageSettings):
    word_vectors: WordVectorsConfig

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "WordVectorsSettings":
        return cls(word_vectors=config.word_vectors[wildcards.vectors])


@stage(execution_only={"word_vectors.path"})
def word_vectors(
    vocabulary: In[kinds.VocabularyFile],
    settings: WordVectorsSettings,
    report: Reporter,
    vectors: Out[kinds.WordVectorsFile],
    coverage: Out[kinds.CoverageFile],
) -> None:
    """Look up the words of a vocabulary in a word-vector file and write the initial embedding."""
    from vitcapr.files import write_json
    from vitcapr.formats.vocabulary import Vocabulary, write_word_vectors
    from vitcapr.text.vector_files import describe_coverage, initial_embedding

    config = settings.word_vectors
    matrix, covered = initial_embedding(Vocabulary.read(vocabulary), find_data(config.path), config.dimension)
    write_word_vectors(vectors, matrix)
    write_json(coverage, covered)
    for line in describe_coverage(covered):
        report.line(line)
