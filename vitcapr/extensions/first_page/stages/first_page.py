from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.experiment import ScoredModels, SeededModel
from vitcapr.formats import kinds
from vitcapr.loader import ask
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter

PICTURES = 12
"""Pictures with captions."""
ShownFile = Annotated[Path, "Files in the folder of the experiment that the page shows"]
_NAMED_BY = {
    **dict.fromkeys(("captions.json", "claims.json", "attention.npz", "embeddings.npz"), slice(1, -2)),
    "ranks.npz": slice(2, -2),
    **dict.fromkeys(("history.csv", "card.json", "differences.csv", "page_section.json"), slice(0, -1)),
}
"""The files of the page, and the folders in the experiment's that name each of them."""


class FirstPageSettings(StageSettings):
    language: str
    """Language of the references."""
    images: list[str]
    """Pictures that come first, by id or file name."""
    words: list[str]
    """Pictures with captions that hold any of them come next."""
    seeded: dict[str, SeededModel]
    """The models that a grid gave seeds of their own."""
    bases: dict[str, str]
    """For each reranked system of captions, the one whose captions a retriever reorders."""
    has_oracle: bool
    configuration: dict[str, Any]
    """The configuration of the whole experiment, for the history of its runs."""
    resampling: dict[str, int]
    """Bootstrap samples and seed of the paired differences from the run before."""
    facts: dict[str, str]
    """The parts of the experiment, for the head of the page."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        scored = ScoredModels(config)
        rerankings = {name: config.rerankings[name] for name in config.run.rerankings}
        models = {
            "captioners": [f"{name} (on {config.captioners[name].backbone})" for name in config.run.captioners],
            "decodings": config.run.decodings,
            "rerankings": [f"{name} (of {each.decoding})" for name, each in rerankings.items()],
            "retrievers": [f"{name} (on {config.retrievers[name].backbone})" for name in config.run.retrievers],
            **dict(ask("facts", config)),
        }
        return cls(
            language=config.text.language,
            images=config.figures.examples_first,
            words=config.figures.examples_words,
            seeded=scored.seeded,
            bases={
                f"{captioner}/{name}": f"{captioner}/{each.decoding}"
                for captioner in config.run.captioners
                for name, each in rerankings.items()
                if each.by == "retriever"
            },
            has_oracle=any(each.by == "oracle" for each in rerankings.values()),
            configuration=config.model_dump(mode="json"),
            resampling=dict(config.metrics.resampling),
            facts={name: ", ".join(of_kind) for name, of_kind in models.items() if of_kind}
            | {"seed": f"{config.seed}, unless a model sets one"},
        )


def files_by_name(folder: Path, files: Iterable[Path]) -> dict[str, dict[str, Path]]:
    """Return the files of each file name, by the folders that name them: ``captions.json`` by ``plain/beam``."""
    found: dict[str, dict[str, Path]] = {name: {} for name in _NAMED_BY}
    for file in files:
        parts = file.relative_to(folder).parts
        found[file.name]["/".join(parts[_NAMED_BY[file.name]])] = file
    return found


@stage(execution_only={"command", "configuration", "figures"})
def first_page(
    summary: In[kinds.SummaryFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: FirstPageSettings,
    report: Reporter,
    page: Out[kinds.PageFile],
    results: list[In[ShownFile]] | None = None,
    command: Annotated[str, "Command that runs the experiment, for the page"] = "",
    figures: Annotated[bool, "Whether figures lie beside the page"] = False,
) -> None:
    """Write the first page: the result, scores, captioned pictures, retrieval at its best and worst, training, cost.

    It is one file of at most about 2 MB that needs no network and no other file. The cost is that of the jobs behind
    the page, from the run records beside it.
    """
    from vitcapr.extensions.first_page import first_page_examples as examples
    from vitcapr.extensions.first_page.answers import answers, since_the_last_run
    from vitcapr.extensions.first_page.experiments import PICTURE, write_experiments
    from vitcapr.extensions.first_page.index_page import (
        Noted,
        code_version,
        cost_note,
        cost_table,
        data_line,
        jobs_behind,
        left_out_line,
        to_html,
    )
    from vitcapr.extensions.first_page.look import what_to_look_at
    from vitcapr.extensions.first_page.marks import difference_marks, history_marks
    from vitcapr.extensions.first_page.run_history import history_table, record_run
    from vitcapr.files import write_bytes, write_text
    from vitcapr.formats.claims import read_claims
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import read_differences, read_summary
    from vitcapr.formats.tables import read_page_section
    from vitcapr.report.figures.examples import Choice, open_images
    from vitcapr.report.score_tables import difference_table, score_tables

    data, scores = read_manifest(manifest), read_summary(summary)
    choice = Choice(PICTURES, settings.images, settings.words)
    files = files_by_name(page.parent, results or [])
    captions, attention, claims = (
        {name.replace("/", ", "): path for name, path in files[each].items()}
        for each in ("captions.json", "attention.npz", "claims.json")
    )
    embeddings, ranks = files["embeddings.npz"], files["ranks.npz"]
    histories, cards, sections = files["history.csv"], files["card.json"], files["page_section.json"].values()
    bases = {name.replace("/", ", "): base.replace("/", ", ") for name, base in settings.bases.items()}
    checked = {name: read_claims(path) for name, path in claims.items()}
    compared = next(map(read_differences, files["differences.csv"].values()), None)
    with open_images(data) as read:
        looked = examples.looked(data, split, captions, attention, read)
        captioned = examples.captioned(
            data, split, settings.language, captions, bases, choice, read, attention, checked
        )
        retrieved = examples.retrieved(data, split, scores, embeddings, ranks, read)
    jobs = jobs_behind(page, [summary, manifest, *captions.values(), *embeddings.values()])
    resampled, configuration = settings.resampling, settings.configuration
    runs = (
        record_run(page.parent, scores, split, manifest, jobs, configuration, code_version(), resampled) if jobs else []
    )
    extensions = [read_page_section(path) for path in sections]
    text = to_html(
        title=page.parent.name,
        folder=str(page.parent),
        again=command,
        facts=[
            ("data", data_line(data, settings.language)),
            *([("left out", left_out)] if (left_out := left_out_line(manifest.parent)) else []),
            *settings.facts.items(),
        ],
        answers=[*answers(scores, split, compared), *since_the_last_run(runs, split)],
        look=what_to_look_at(data, split, captions, histories, extensions),
        differences=difference_marks(compared) if compared is not None else None,
        difference_table=difference_table(compared) if compared is not None else None,
        scores=[*score_tables(scores), *examples.seed_tables(scores, settings.seeded)],
        curves=examples.training_pictures(histories, cards),
        cost=Noted(cost_table(jobs), cost_note(jobs)) if jobs else None,
        history=history_table(runs, split) if len(runs) > 1 else None,
        runs=history_marks(runs, split),
        has_oracle=settings.has_oracle,
        split=split,
        figures=figures,
        of_extensions=extensions,
        looked=looked,
        captioned=captioned,
        retrieved=retrieved,
    )
    write_text(page, text)
    if runs:
        if looked:
            write_bytes(page.with_name(PICTURE), looked["picture"].content)
        write_experiments(page.parent.parent, split)
    report.line(str(page))
