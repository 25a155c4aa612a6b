"""The part of speech of every word of every caption: tags.npz and tags.json, which says who tagged them."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.tags import TAGS, TagTable
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.tags import TagSettings
from vitcapr.errors import UserError
from vitcapr.files import sha256_file, write_json
from vitcapr.progress import Reporter
from vitcapr.text.tags import taggers

FORMAT = "vitcapr-tags-1"


def main(
    manifest: ManifestFile,
    output: Annotated[Path, typer.Option(help="tags.npz to write.")],
    card: Annotated[Path, typer.Option(help="tags.json to write: the tagger, the tags, how often each occurs.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Tag the words of all captions, each by the tagger of its language."""
    chosen = parse_settings(TagSettings, settings).tags
    captions = read_manifest(manifest).captions
    languages = sorted(captions["language"].unique())
    by_language = taggers(chosen.tagger)
    if strange := [language for language in languages if language not in by_language]:
        raise UserError(f"no tagger for the language '{strange[0]}'", where=manifest, remedy="tags are en and zh")
    with Reporter(log) as reporter:
        tagged = []
        with reporter.track("tag_words", len(captions), "captions") as bar:
            for text, language in zip(captions["text"], captions["language"], strict=True):
                tagged.append(by_language[language].tag(text))
                bar.advance()
        table = TagTable.of(tagged)
        table.write(output)
        used = {language: by_language[language].name for language in languages}
        content = {
            "format": FORMAT,
            "taggers": used,
            "tags": list(TAGS),
            "counts": table.counts(),
            "captions_sha256": sha256_file(manifest.parent / "captions.parquet"),
        }
        write_json(card, content)
        reporter.line(", ".join(f"{language}: {name}" for language, name in used.items()))


if __name__ == "__main__":
    launch(main)
