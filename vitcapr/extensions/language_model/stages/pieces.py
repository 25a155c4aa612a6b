from typing import Annotated, Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.captioner import LanguageModelConfig
from vitcapr.config.features import TextConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class PiecesSettings(StageSettings):
    text: TextConfig = TextConfig()
    language_model: LanguageModelConfig

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        return cls(text=config.text, language_model=config.captioners[wildcards.captioner].language_model)


@stage()
def pieces(
    manifest: In[kinds.ManifestFile],
    settings: PiecesSettings,
    report: Reporter,
    vocabulary: Out[kinds.VocabularyFile],
    tokens: Annotated[Out[kinds.TokensFile], "tokens.npz: the captions as numbers of pieces"],
) -> None:
    """Cut every caption, cleaned as for the vocabulary of words, into the pieces of a language model.

    The pieces of the training captions are the vocabulary; words with other pieces are left out of captions.
    """
    from dataclasses import replace

    from vitcapr.encoders.checkpoints import source_name
    from vitcapr.encoders.language_models import Pieces
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import SPECIALS, Vocabulary
    from vitcapr.text.corpus import Corpus
    from vitcapr.text.normalise import words_of

    text, model = settings.text, settings.language_model
    corpus, cutter, cleaning = Corpus(["train"]), Pieces(model.source, model.revision), text.normalise.model_dump()
    for part in read_manifest(manifest).caption_parts(language=text.language):
        corpus.add(part, [cutter.cut(words_of(caption, **cleaning)) for caption in part["text"]])
    built = Vocabulary.build(corpus.counts, min_count=1, unknown=False, recipe=settings.canonical())
    signature = f"pieces:{source_name(model.source)},train,{len(built)}"
    built = replace(built, signature=signature, rows=cutter.rows(built.words[len(SPECIALS) :]))
    table = corpus.encode(built)
    built.write(vocabulary)
    table.write(tokens)
    report.line(f"{signature}: {len(table)} captions, {table.lengths.max() - 2} pieces at most")
