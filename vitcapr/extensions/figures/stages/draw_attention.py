from vitcapr.config.report import FigureSettings
from vitcapr.errors import UserError, did_you_mean
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def draw_attention(
    captions: In[kinds.CaptionsFile],
    attention: In[kinds.AttentionFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the attention at each word of a caption, or at chosen words, of some images.

    Images are named, or sampled from those with the longest captions.
    """
    from vitcapr.formats.captions import read_attention
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.attention import attended_words
    from vitcapr.report.figures.examples import Choice, choose_attended, open_images
    from vitcapr.report.figures.page_layout import nothing_to_draw
    from vitcapr.report.figures.style import save_pictures

    data, choice = read_manifest(manifest), Choice(**settings.figures.attended)
    vocabulary_words = Vocabulary.read(vocabulary).words
    for word in choice.words:
        if word not in vocabulary_words:
            what = f"figures.attention_words: the vocabulary has no word '{word}'"
            raise UserError(what, remedy=did_you_mean(word, vocabulary_words, "name a word of text/vocabulary.json"))
    chosen, drawn = choose_attended(data, split, captions, read_attention(attention), choice), {}
    with open_images(data) as read:
        for number, (row, caption, weights) in enumerate(chosen, 1):
            report.line(f"image {caption.image_id}: {caption.caption}")
            places = [place for place, token in enumerate(caption.tokens) if token in choice.words]
            if choice.words and not places:
                report.line(f"the caption has none of {', '.join(choice.words)}; all its words are drawn")
            places, best = places or [*range(len(caption.tokens))], caption.candidates[0]
            note = f"{caption.caption} (score {best.score:.2f}, log-probability {best.log_prob:.2f})"
            words = [caption.tokens[place] for place in places]
            drawn[f"attention-{number}"] = attended_words(read(row), words, weights[places], note)
    for number in range(len(chosen) + 1, choice.count + 1):
        drawn[f"attention-{number}"] = nothing_to_draw(f"The split '{split}' has {len(chosen)} images with a caption.")
    save_pictures(drawn, pictures, report)
