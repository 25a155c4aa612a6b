from vitcapr.config.base import StageSettings
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.config import TagsConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class TagSettings(StageSettings):
    tags: TagsConfig = TagsConfig()


@stage()
def tag_words(
    manifest: In[kinds.ManifestFile],
    settings: TagSettings,
    report: Reporter,
    tags: Out[kinds.TagsFile],
    card: Out[kinds.TagsCard],
) -> None:
    """Tag the words of all captions with the tagger of their language."""
    from vitcapr.extensions.finetuning.tags import taggers
    from vitcapr.extensions.finetuning.text_files import TagTable, write_tags_card
    from vitcapr.files import sha256_file
    from vitcapr.formats.manifest import read_manifest

    captions = read_manifest(manifest).captions
    languages = sorted(captions["language"].unique())
    by_language = taggers(settings.tags.tagger)
    if strange := [language for language in languages if language not in by_language]:
        raise UserError(f"no tagger for the language '{strange[0]}'", where=manifest, remedy="use en or zh")
    tagged = []
    with report.track("tag_words", len(captions), "captions") as bar:
        for text, language in zip(captions["text"], captions["language"], strict=True):
            tagged.append(by_language[language].tag(text))
            bar.advance()
    table = TagTable.of(tagged)
    table.write(tags)
    used = {language: by_language[language].name for language in languages}
    write_tags_card(card, table, used, sha256_file(manifest.parent / "captions.parquet"))
    report.line(", ".join(f"{language}: {name}" for language, name in used.items()))
