from vitcapr.config.base import StageSettings
from vitcapr.config.features import TextConfig
from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class VocabularySettings(StageSettings):
    """The settings of the stage ``vocabulary``."""

    text: TextConfig = TextConfig()


@stage()
def vocabulary(
    manifest: In[kinds.ManifestFile],
    settings: VocabularySettings,
    report: Reporter,
    vocabulary: Out[kinds.VocabularyFile],
    tokens: Out[kinds.TokensFile],
) -> None:
    """Count the words of the captions, keep the frequent ones, and encode every caption as word numbers."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.text.corpus import Corpus
    from vitcapr.text.normalise import words_of

    text = settings.text
    corpus, cleaning = Corpus(text.vocabulary.splits), text.normalise.model_dump()
    for part in read_manifest(manifest).caption_parts(language=text.language):
        corpus.add(part, [words_of(caption, **cleaning) for caption in part["text"]])
    if not corpus.counted:
        raise UserError(
            f"no caption in the language '{text.language}' in {' or '.join(text.vocabulary.splits)}",
            where=manifest,
            remedy="check text.language and text.vocabulary.splits",
        )
    built = Vocabulary.build(corpus.counts, **text.vocabulary.values(), recipe=text.canonical())
    table = corpus.encode(built)
    built.write(vocabulary)
    table.write(tokens)
    report.line(
        f"{built.signature}: {len(built)} entries (words and signs) from {corpus.counted} captions, "
        f"{built.token_coverage:.2%} of running words; {sum(built.rare.values())} rarer words omitted"
    )
    if len(table) < corpus.captions:
        report.line(f"{corpus.captions - len(table)} of {corpus.captions} captions have no known word and are omitted")
