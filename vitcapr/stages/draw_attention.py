from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Split
from vitcapr.progress import Reporter
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures, attention_choice


@Drawing(
    files=lambda experiment: [
        f"attention/{{captioner}}/{{decoding}}/{{split}}/attention-{number}"
        for number in range(1, attention_choice(experiment.config.figures)["count"] + 1)
    ],
    inputs=lambda _: {
        "captions": "results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        "attention": "results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        "manifest": MANIFEST,
        "vocabulary": "results/{experiment}/text/vocabulary.json",
    },
    each=lambda experiment: experiment.captioning.attention,
    caption="Where {captioner} looks when it writes a word: the attention over the patches, enlarged to the "
    "size of the image. Brighter is more.",
    category="Attention",
    labels={"figure": "attention by word", "decoding": "{decoding}", "split": "{split}"},
    priority=5,
)
def draw_attention(
    captions: In[kinds.CaptionsFile],
    attention: In[kinds.AttentionFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
) -> Pictures:
    """Draw the attention at each word of a caption, or at chosen words, of some images.

    Images are named, or sampled from those with the longest captions.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.attention import draw_attended
    from vitcapr.report.figures.examples import Choice, check_words

    choice = Choice(**attention_choice(settings.figures))
    check_words(choice.words, Vocabulary.read(vocabulary).words)
    return draw_attended(read_manifest(manifest), split, captions, attention, choice, report)
