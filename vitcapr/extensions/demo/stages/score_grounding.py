from vitcapr.config.report import SCORERS, ScoreSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def score_grounding(
    captions: In[kinds.CaptionsFile],
    attention: In[kinds.AttentionFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    split: Split,
    settings: ScoreSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Measure how much of the attention of each object word falls on the object, where the data set has masks."""
    from vitcapr.extensions.demo.grounding import measures, object_words, read_pictures
    from vitcapr.formats.captions import read_attention, read_captions
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.metrics.caption_metric import check_candidates, write_measures

    data = read_manifest(manifest)
    nouns = object_words(data, manifest)
    rows = data.rows(split)
    images = data.images["image_id"].iloc[rows].tolist()
    written = read_captions(captions)
    check_candidates({image: entry.caption for image, entry in written.items()}, images)
    words = [list(written[image].tokens) for image in images]
    table = read_attention(attention)
    heat = [table.of_caption(row, written[image], attention) for row, image in zip(rows, images, strict=True)]
    weights = [each.reshape(len(each), -1).astype("float64") for each in heat]
    measured = measures(words, weights, read_pictures(data, images, report), nouns, table.grid)
    parts = ["grounding:mask-union,area", "pointing:bilinear-max", f"grid:{table.grid[0]}x{table.grid[1]}"]
    parts += [Vocabulary.read(vocabulary).signature, f"images:{len(images)}"]
    scores = write_measures(
        metrics, data, split, measured, parts, model=model, decoding=decoding, **settings.metrics.resampling
    )
    for name in ("grounding", "pointing_game"):
        value, chance = scores[name]["value"], scores[f"{name}_chance"]["value"]
        if value is None or chance is None:
            report.line(f"score_grounding: {name}: no caption names an object of its picture")
        else:
            report.line(f"score_grounding: {name} {value:.1%}, by chance {chance:.1%}")
