from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def draw_captions(
    captions: dict[str, In[kinds.CaptionsFile]],
    manifest: In[kinds.ManifestFile],
    split: Split,
    language: Language,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
    claims: dict[str, In[kinds.CheckedClaimsFile]] | None = None,
) -> None:
    """Draw a sheet of captioned images, sampled at random, with one reference: figures 5, 6, 11, 12 of ViTCap-R."""
    from vitcapr.extensions.figures.caption_sheets import caption_sheet
    from vitcapr.formats.captions import read_captions
    from vitcapr.formats.claims import read_claims
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.examples import Choice, open_images, read_captioned, rows_of_split
    from vitcapr.report.figures.style import save_pictures

    data, choice = read_manifest(manifest), Choice(**settings.figures.examples_of(settings.figures.examples))
    systems = {name.replace("/", ", "): read_captions(path) for name, path in captions.items()}
    rows = rows_of_split(data, split, systems)
    checked = {name.replace("/", ", "): read_claims(path) for name, path in (claims or {}).items()}
    with open_images(data) as read:
        chosen = choice.choose_images(data, rows)
        examples = read_captioned(data, split, language, systems, chosen, read, claims=checked)
    note = f"{len(examples)} of {len(rows):,} images of the {split} split, {choice.note}."
    if checked:
        note += " Underlined in red: wrong words."
    save_pictures(caption_sheet(examples, note), pictures, report)
