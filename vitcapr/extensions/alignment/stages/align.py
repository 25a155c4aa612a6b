from typing import Annotated

from vitcapr.config.base import StageSettings
from vitcapr.extensions.alignment.settings import AlignmentConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Out, stage
from vitcapr.progress import Reporter


class AlignSettings(StageSettings):
    alignment: AlignmentConfig


@stage(cached=True, execution_only={"content_check"})
def align(
    features: In[kinds.FeaturesFile],
    text_features: In[kinds.TextFeaturesFile],
    manifest: In[kinds.ManifestFile],
    language: Language,
    name: Annotated[str, "Name of the alignment"],
    settings: AlignSettings,
    report: Reporter,
    scores: Annotated[Out[kinds.TableFile], "scores.csv: a row for each fit"],
    differences: Annotated[Out[kinds.TableFile], "differences.csv: every difference to the linear head"],
    intervals: Annotated[Out[kinds.TableFile], "intervals.csv: recalls with intervals of each family and input"],
    similarity: Annotated[Out[kinds.TableFile], "similarity.csv: of each input before anything is fitted"],
    seconds: Annotated[Out[kinds.TableFile], "seconds.csv: the processor time of each fit, as measured"],
    table: Annotated[list[Out[kinds.TableFile]], "tables.md, tables.html: all of it for people"],
    page: Out[kinds.PageSectionFile],
    augmented_views: list[In[kinds.FeaturesFile]] | None = None,
    content_check: Annotated[bool, "Compare the features of images and captions"] = True,
) -> None:
    """Fit families of alignments to pairs of two stores, and compare their recall on the test split.

    Settings are chosen on the validation split. The same comparison as ``vitcapr align``.
    """
    from vitcapr.extensions.alignment.comparison import compare_alignments, largest_study
    from vitcapr.extensions.alignment.pairing import pair_by_manifest
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.page import write_page
    from vitcapr.formats.tables import PageSection, write_page_section
    from vitcapr.retrieval.embedder import open_augmented_views
    from vitcapr.store.reader import open_features

    alignment = settings.alignment
    data = read_manifest(manifest)
    views = open_augmented_views(data, alignment.views, features, augmented_views)
    sentences = open_features(text_features)
    sentences.check_rows("caption_id", data)
    result = compare_alignments(views, sentences, pair_by_manifest(data, language), alignment, report, content_check)
    result.write(scores=scores, differences=differences, intervals=intervals, similarity=similarity, seconds=seconds)
    write_page(table, result.page, home="../../index.html")
    note = f"More tables are in {table[0].parent.name}/{table[0].name}, in the folder alignments."
    write_page_section(
        page, PageSection(f"alignment-{name}", f"Alignment {name}", note, [largest_study(name, result.scores)])
    )
