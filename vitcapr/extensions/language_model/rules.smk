# Captions -> the pieces of the language model of a captioner.

from vitcapr.extensions.language_model.captioners.language_model import (
    Config as language_model,
)


use rule cpu_job as pieces with:
    input:
        manifest=paths.MANIFEST,
    output:
        vocabulary=f"{paths.ROOT}/{language_model.words}/vocabulary.json",
        tokens=f"{paths.ROOT}/{language_model.words}/tokens.npz",
    log:
        paths.log("pieces", "captioner"),
    params:
        **stages.pieces(),
