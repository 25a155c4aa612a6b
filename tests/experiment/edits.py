"""Every kind of edit, and the rules that have to run again after it: what is tested, and what docs/edits.md shows.

Write the page again after a change:  python tests/experiment/edits.py
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from operator import methodcaller
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "edits.md"

RERANKING = frozenset({"tune_reranking", "rerank", "draw_reranked"})
PAGED = frozenset({"summary", "differences", "first_page"})
COMPARED = PAGED | {"score", "compare"}
AFTER_CAPTIONS = COMPARED | RERANKING | {"rerank_oracle", "draw_captions", "check_claims"}
AFTER_ATTENTION = frozenset({"score_grounding", "draw_attention"})
DECODING = frozenset({"decode", "decode_attentively"}) | AFTER_CAPTIONS | AFTER_ATTENTION
EMBEDDED = frozenset({"embed", "score_retrieval", "draw_recall", "draw_embeddings", "draw_retrieved"})
CURVES = frozenset({"draw_curves"})
RETRIEVAL = EMBEDDED | CURVES | {"train_retriever"} | RERANKING | COMPARED | {"draw_captions", "check_claims"}
CAPTIONING = CURVES | {"train_captioner"} | DECODING
TRAINING = CAPTIONING | RETRIEVAL
FEATURES = TRAINING | {"extract", "seal", "feature_statistics"}
WORDS = frozenset({"draw_caption_lengths", "draw_word_frequencies"})
TEXT = TRAINING | WORDS | {"vocabulary"}
ALL = FEATURES | TEXT | {"data", "train_backbone", "paraphrases"}
METEOR = AFTER_CAPTIONS | {"paraphrases"}
RANKED = PAGED | {"score_retrieval", "draw_retrieved", "draw_recall"}
SCORES = COMPARED | RANKED | {"score_grounding", "check_claims"}
EXAMPLES = frozenset({f"draw_{name}" for name in ("attention", "captions", "reranked", "retrieved")})
DRAWN = EXAMPLES | CURVES | WORDS | {"draw_embeddings", "draw_recall"}
"""A figure that is not here is left out by the tests, so that a new one changes no test but its own."""

# Photographs have no masks: nothing is grounded or checked, no backbone trained, and no greedy decoding keeps its
# attention.
MASKED = AFTER_ATTENTION | {"check_claims", "train_backbone", "decode_attentively"}
PHOTOGRAPHS = (ALL | {"word_vectors"}) - MASKED

ORDER = (
    *("data", "train_backbone", "extract", "seal", "feature_statistics", "vocabulary", "word_vectors"),
    "train_captioner",
    *("decode", "train_retriever", "embed", "tune_reranking", "rerank", "rerank_oracle"),
    *("paraphrases", "score", "score_grounding", "check_claims", "score_retrieval", "compare"),
    *("differences", "summary", "first_page"),
)


@dataclass(frozen=True)
class Edit:
    """One edit of a project in which everything is computed.

    Args:
        name: what is done, for the page.
        make: does it to a project.
        reruns: exactly the rules that run again.
        of: ``two`` (rendered pictures, two captioners) or ``photographs`` (the user's files).
    """

    name: str
    make: Callable[[Any], None]
    reruns: Collection[str]
    of: str = "two"


append, add, replace, configure = (partial(methodcaller, name) for name in ("append", "add", "replace", "configure"))
"""What a project does to its files, for later."""


def touch(file: str, time: int) -> Callable[[Any], None]:
    return lambda project: os.utime(project.root / file, (time, time))


def release(distribution: str, number: str = "99.0") -> Callable[[Any], None]:
    """Another installed version: a folder of metadata that Python finds first."""

    def install(project: Any) -> None:
        folder = project.root / f"{distribution.replace('-', '_')}-{number}.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {number}\n")

    return install


def patch_release(distribution: str) -> Callable[[Any], None]:
    """A later patch release than the installed one."""
    return release(distribution, f"{version(distribution).rpartition('.')[0]}.99")


def together(*edits: Callable[[Any], None]) -> Callable[[Any], None]:
    def make(project: Any) -> None:
        for edit in edits:
            edit(project)

    return make


def replace_image(project: Any) -> None:
    """Other bytes, as many of them, and a time before the computation."""
    project.replace("photographs/1.jpg", "first", "other")
    os.utime(project.root / "photographs/1.jpg", (1_000_000_000, 1_000_000_000))


def respell(project: Any) -> None:
    project.configure(
        data__flickr8k__images="./photographs/",
        data__flickr8k__text=str(project.root / "text"),
        word_vectors__glove__path="photographs/../vectors.txt",
        backbones__local__source="./weights/",
    )


def touch_results(project: Any) -> None:
    for path in (project.root / "results").rglob("*"):
        os.utime(path)


def rename(project: Any) -> None:
    (project.root / "results/two").rename(project.root / "results/other")
    project.configure(experiment="other")


def move(name: str, **keys: str) -> Callable[[Any], None]:
    """Move a file or folder of the user out of the project."""

    def make(project: Any) -> None:
        (elsewhere := project.root.parent / "elsewhere").mkdir(exist_ok=True)
        (project.root / name).rename(elsewhere / name)
        project.configure(**{key: str(elsewhere / value) for key, value in keys.items()})

    return make


def delete(file: str) -> Callable[[Any], None]:
    return lambda project: (project.root / file).unlink()


OF_PLAIN = DECODING - AFTER_ATTENTION - {"decode_attentively", "tune_reranking"}
"""After captions of the test images, by the captioner without attention."""
PROGRESS, ERRORS = "vitcapr/progress.py", "vitcapr/errors.py"
BEAM, GENERATE = "vitcapr/decoding/beam.py", "vitcapr/decoding/generate.py"
PLAIN = {"phases": [{"epochs": 10, "learning_rate": 0.5}]}

EDITS = (
    Edit("a comment in the beam search", append(BEAM, "\n# A remark.\n"), ()),
    Edit("blank lines in the training loop", append("vitcapr/training/loop.py", "\n\n\n\n"), ()),
    Edit("the version number of vitcapr", append("vitcapr/__init__.py"), ()),
    Edit(
        "the device, and batch sizes of extraction and decoding",
        configure(device="cpu", features={"batch": 16}, decodings={"greedy": {"batch_images": 7}}),
        (),
    ),
    Edit("an output touched", touch("results/two/data/manifest.json", 2_000_000_000), ()),
    Edit("code of the manifest", append("vitcapr/formats/manifest.py"), ALL),
    Edit("the words of rendered scenes, in YAML", append("vitcapr/extensions/demo/lexicon.yaml", "MORE: 1\n"), ALL),
    Edit("code of the training loop", append("vitcapr/training/loop.py"), TRAINING),
    Edit("code of the contrastive loss", append("vitcapr/training/contrastive.py"), RETRIEVAL),
    Edit("code of the beam search", append(BEAM), DECODING),
    Edit("a line in the log of decoding", replace(GENERATE, "} images, ", "} pictures, "), DECODING),
    Edit("code of the configuration that changes no value", append("vitcapr/config/captioner.py"), ()),
    Edit(
        "the default of a key of decodings, in code",
        replace("vitcapr/config/captioner.py", "max_length: int = Field(35", "max_length: int = Field(30"),
        DECODING,
    ),
    Edit("code of reranking", append("vitcapr/retrieval/n_best.py"), AFTER_CAPTIONS),
    Edit("code of METEOR", append("vitcapr/metrics/java.py"), METEOR),
    Edit(
        "a new metric of captions, switched off",
        add("vitcapr/metrics/captions/length.py", "METRIC = None\n"),
        (),
    ),
    Edit(
        "the label of a score",
        append("vitcapr/metrics/labels.yaml", "  mine: {label: mine}\n"),
        COMPARED | {"check_claims", "draw_captions"},
    ),
    Edit("code of one figure", append("vitcapr/report/figures/curves.py"), {"draw_curves", "first_page"}),
    Edit(
        "another release of pycocoevalcap", release("pycocoevalcap"), METEOR | CURVES | {"train_captioner"} | DECODING
    ),
    Edit("another release of scikit-learn", release("scikit-learn"), {"draw_embeddings"}),
    Edit("another release of pandas, which only carries tables", release("pandas"), ()),
    Edit("code of progress messages and of errors", together(append(PROGRESS), append(ERRORS)), ()),
    Edit("another patch release of numpy", patch_release("numpy"), ()),
    Edit("the licence of the data set", configure(data__licence="CC BY 4.0"), set()),
    Edit(
        "the number of times that a word must occur to be in the vocabulary",
        configure(text={"vocabulary": {"min_count": 4}}),
        TEXT,
    ),
    Edit("the seed", configure(seed=1), TRAINING),
    Edit(
        "the learning rate of one captioner",
        configure(captioners__plain__training=PLAIN),
        CURVES | {"train_captioner", "decode"} | AFTER_CAPTIONS,
    ),
    Edit("the length penalty of the beam", configure(decodings={"beam": {"length_penalty": 0.5}}), DECODING),
    Edit(
        "the steps of the reranking weight",
        configure(rerankings__reranked__weighing={"grid_steps": 5}),
        RERANKING | COMPARED | {"draw_captions", "check_claims"},
    ),
    Edit("bootstrap samples", configure(metrics={"bootstrap_samples": 10}), SCORES | {"draw_captions"}),
    Edit("examples in the figures", configure(figures={"examples": 3}), EXAMPLES),
    Edit("the deleted table of scores", delete("results/two/summary.csv"), PAGED - {"differences"}),
    Edit(
        "other spellings of the same paths: `./x/`, `a/../x`, the absolute path",
        respell,
        (),
        of="photographs",
    ),
    Edit("a photograph touched", touch("photographs/1.jpg", 2_000_000_000), (), of="photographs"),
    Edit("a README or a licence beside the weights", add("weights/README.md", "# A model\n"), (), of="photographs"),
    Edit("the extra heic, for photographs in JPEG", release("pillow-heif"), (), of="photographs"),
    Edit(
        "the extra heic, for a photograph in HEIC",
        together(add("photographs/3.heic", "third"), release("pillow-heif")),
        PHOTOGRAPHS,
        of="photographs",
    ),
    Edit("a photograph changed", append("photographs/2.jpg", "another"), PHOTOGRAPHS, of="photographs"),
    Edit("a photograph replaced: same size, older time", replace_image, PHOTOGRAPHS, of="photographs"),
    Edit("the captions' file changed", append("text/Flickr8k.token.txt", "another"), PHOTOGRAPHS, of="photographs"),
    Edit(
        "the file of word vectors changed",
        append("vectors.txt", "cat 3 4"),
        ({"word_vectors"} | CAPTIONING) - MASKED,
        of="photographs",
    ),
    Edit(
        "the weights of a local backbone",
        append("weights/model.safetensors", "another"),
        PHOTOGRAPHS - WORDS - {"data", "vocabulary", "word_vectors", "paraphrases"},
        of="photographs",
    ),
    Edit("the number of jobs that share an extraction", configure(features={"tasks": 4}), ()),
    Edit("a part of a finished extraction deleted", delete("results/two/features/vit/parts/0.json"), ()),
    Edit("the cache of digests deleted", delete("results/.digests.json"), (), of="photographs"),
    Edit("all results with new times, as a copy gives them", touch_results, ()),
    Edit("a captioner left out", configure(run__captioners=["attention"]), PAGED | CURVES | {"draw_captions"}),
    Edit("no figures", configure(figures="none"), ()),
    Edit("code of extraction", append("vitcapr/store/fill.py"), FEATURES),
    Edit("the size of the images", configure(backbones={"vit": {"image_size": 32}}), FEATURES),
    Edit("the beam size", configure(decodings={"beam": {"beam_size": 7}}), DECODING),
    Edit("captions edited by hand", append("results/two/captions/plain/beam/test/captions.json"), OF_PLAIN),
    Edit(
        "the deleted captions of a beam search", delete("results/two/captions/plain/beam/test/captions.json"), OF_PLAIN
    ),
    Edit("the deleted weights of a retriever", delete("results/two/retrievers/paper/best.safetensors"), RETRIEVAL),
    Edit(
        "the deleted run record of a training",
        delete("results/two/runs/train_captioner/plain.json"),
        OF_PLAIN | CURVES | {"train_captioner", "tune_reranking"},
    ),
    Edit("another release of torch", release("torch"), ALL - WORDS - {"data", "vocabulary", "paraphrases"}),
    Edit("the largest number of images", configure(data__flickr8k__limit=1), PHOTOGRAPHS, of="photographs"),
    Edit(
        "the README of the photographs changed",
        add("photographs/README.md", "# Photographs\n"),
        PHOTOGRAPHS,
        of="photographs",
    ),
    Edit("another name of the experiment and its folder, which two files print", rename, {"summary", "first_page"}),
    Edit(
        "the photographs in another folder",
        move("photographs", data__flickr8k__images="photographs"),
        (),
        of="photographs",
    ),
    Edit(
        "a backbone, word vectors and captions in other folders",
        together(
            move("weights", backbones__local__source="weights"),
            move("text", data__flickr8k__text="text"),
            move("vectors.txt", word_vectors__glove__path="vectors.txt"),
        ),
        (),
        of="photographs",
    ),
)


def page() -> str:
    """docs/edits.md."""
    groups: dict[str, list[str]] = {}
    for edit in EDITS:
        groups.setdefault(_spelled(edit), []).append(edit.name)
    lines = [
        "# Which edit re-runs what",
        "",
        f"This page lists {len(EDITS)} edits of a finished run and exactly the rules that each edit re-runs.",
        "`tests/experiment/test_edits.py` checks the list, and `python tests/experiment/edits.py` writes this page.",
        "`vitcapr status` gives the same answer for your own edits.",
        "[Architecture](architecture.md#when-a-stage-runs-again) says what counts.",
        "",
        "The run has two captioners, a retriever, a reranking and an oracle on rendered images. Edits of photographs,",
        "captions, word vectors and local backbones are of a run on the user's own files. `draw_*` means all figures",
        "but the two of the words in captions, which have their names.",
        "",
        "| any of these edits | runs again |",
        "| --- | --- |",
        *(f"| {'; '.join(edits)} | {rules} |" for rules, edits in groups.items()),
    ]
    return "\n".join(lines) + "\n"


def _spelled(edit: Edit) -> str:
    if not edit.reruns:
        return "nothing"
    if edit.reruns in (ALL, PHOTOGRAPHS):
        return "everything"
    rules = {rule.removesuffix("_attentively") for rule in edit.reruns}
    drawn = (DRAWN if edit.of == "two" else DRAWN - MASKED) - WORDS
    if rules >= drawn:
        rules = (rules - drawn) | {"draw_*"}
    return ", ".join(f"`{rule}`" for rule in sorted(rules, key=_place))


def _place(rule: str) -> tuple[int, str]:
    return (ORDER.index(rule) if rule in ORDER else len(ORDER), rule)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
