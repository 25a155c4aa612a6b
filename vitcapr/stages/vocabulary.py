"""Build the vocabulary and encode every caption as word numbers."""

from vitcapr.config.text import VocabularySettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import ManifestFile, TokensFile, VocabularyFile
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def vocabulary(
    manifest: In[ManifestFile],
    settings: VocabularySettings,
    report: Reporter,
    vocabulary: Out[VocabularyFile],
    tokens: Out[TokensFile],
) -> None:
    """Count the words of the captions, keep the frequent ones, and encode every caption as word numbers."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.text.normalise import words_of

    text = settings.text
    captions = read_manifest(manifest).captions_of(language=text.language)
    counted = captions["split"].isin(text.vocabulary.splits).to_numpy()
    if not counted.any():
        raise UserError(
            f"no caption in the language '{text.language}' in {' or '.join(text.vocabulary.splits)}",
            where=manifest,
            remedy="check text.language and text.vocabulary.splits",
        )
    words = [
        words_of(caption, non_letters=text.normalise.non_letters, drop_one_letter=text.normalise.drop_one_letter)
        for caption in captions["text"]
    ]
    built = Vocabulary.build(
        (words[row] for row in counted.nonzero()[0]),
        min_count=text.vocabulary.min_count,
        inclusive=text.vocabulary.threshold == "inclusive",
        unknown=text.vocabulary.unknown,
        splits=text.vocabulary.splits,
        recipe=text.canonical(),
    )
    table = TokenTable.encode(captions, words, built)
    built.write(vocabulary)
    table.write(tokens)
    report.line(
        f"{built.signature}: {len(built)} entries from {int(counted.sum())} captions, "
        f"{built.token_coverage:.2%} of running words; {sum(built.rare.values())} rarer words omitted"
    )
    if len(table) < len(words):
        report.line(f"{len(words) - len(table)} of {len(words)} captions have no known word and are omitted")
