"""Compare ways to align the features of two frozen encoders, over the number of training pairs."""

from typing import Annotated

from vitcapr.config.alignment import AlignmentConfig
from vitcapr.config.base import StageSettings
from vitcapr.formats.kinds import FeaturesFile, ManifestFile, TableFile, TextFeaturesFile
from vitcapr.pipeline.stage import In, Language, Out, stage
from vitcapr.progress import Reporter


class AlignSettings(StageSettings):
    alignment: AlignmentConfig


@stage(cached=True)
def align(
    features: In[FeaturesFile],
    text_features: In[TextFeaturesFile],
    manifest: In[ManifestFile],
    language: Language,
    settings: AlignSettings,
    report: Reporter,
    scores: Annotated[Out[TableFile], "scores.csv: a row for each fit"],
    differences: Annotated[Out[TableFile], "differences.csv: every difference to the linear head"],
    intervals: Annotated[Out[TableFile], "intervals.csv: recalls with intervals, a row for each family and input"],
    similarity: Annotated[Out[TableFile], "similarity.csv: the similarity of each input before anything is fitted"],
    seconds: Annotated[Out[TableFile], "seconds.csv: the processor time of each fit, as measured"],
    table: Annotated[Out[TableFile], "tables.md: all of it for people"],
    augmented_views: list[In[FeaturesFile]] | None = None,
) -> None:
    """Fit families of alignments to pairs of two stores, and compare their recall on the test split.

    Settings are chosen on the validation split. The same comparison as ``vitcapr align``.
    """
    from vitcapr.batches.pairing import pair_by_manifest
    from vitcapr.files import write_text
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.augmented_views import open_augmented_views
    from vitcapr.store.reader import open_features
    from vitcapr.studies.alignment.comparison import compare_alignments

    wanted = settings.alignment
    data = read_manifest(manifest)
    views = open_augmented_views(data, wanted.views, features, augmented_views)
    sentences = open_features(text_features)
    sentences.check_rows("caption_id", data)
    found = compare_alignments(views, sentences, pair_by_manifest(data, language), wanted, report)
    found.write(scores=scores, differences=differences, intervals=intervals, similarity=similarity, seconds=seconds)
    write_text(table, found.page)
