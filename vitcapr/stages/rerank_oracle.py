from typing import Annotated

from vitcapr.config.report import LanguageSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def rerank_oracle(
    candidates: Annotated[In[kinds.CaptionsFile], "captions.json of the split, with candidates"],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: LanguageSettings,
    report: Reporter,
    captions: Annotated[Out[kinds.CaptionsFile], "captions.json, every entry marked as the oracle's"],
) -> None:
    """Put the candidate with the best score first: an upper bound of every reranking, not a result.

    The references that choose are those that score, so the scores of these captions say only how much a perfect
    reranking of the same candidates could gain.
    """
    import numpy as np

    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.candidates import CHOSEN_BY, candidate_ciders
    from vitcapr.metrics.caption_metric import references_of
    from vitcapr.retrieval.n_best import read_n_best, write_reordered

    references = references_of(read_manifest(manifest), split, settings.language)
    found = read_n_best(candidates, list(references))
    by_image = {n_best.image_id: n_best.captions for n_best in found}
    ciders = candidate_ciders(by_image, references, settings.language)
    write_reordered(captions, found, ciders, oracle=CHOSEN_BY)
    changed = sum(int(np.argmax(of_image) != 0) for of_image in ciders)
    report.line(
        f"rerank_oracle: a ceiling, no result; the references prefer another caption for {changed} of "
        f"{len(found)} images"
    )
