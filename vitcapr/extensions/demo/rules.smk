# The ViT that is trained on rendered scenes, and what captions and attention say of known scenes.

from vitcapr.extensions.demo import settings as demo


use rule gpu_job as train_backbone with:
    input:
        manifest=paths.MANIFEST,
    output:
        backbone=stages.train_backbone.folder("backbone", paths.TRAINED_BACKBONE),
    log:
        paths.log("train_backbone"),
    priority: 20
    resources:
        **stages.train_backbone.on_gpu(runtime=120),
    params:
        **stages.train_backbone(),


use rule cpu_job as score_grounding with:
    input:
        captions=paths.CAPTIONS,
        attention=paths.ATTENTION,
        manifest=paths.MANIFEST,
        vocabulary=captioning.vocabulary,
    output:
        metrics=demo.GROUNDING,
    log:
        paths.log("score_grounding", "captioner", "decoding", "split"),
    params:
        **stages.score_grounding(model=lambda wildcards: wildcards.captioner),


use rule cpu_job as check_claims with:
    input:
        captions=paths.CAPTIONS,
        manifest=paths.MANIFEST,
    output:
        metrics=demo.CLAIM_SCORES,
        claims=paths.CLAIMS,
    log:
        paths.log("check_claims", "captioner", "decoding", "split"),
    params:
        **stages.check_claims(model=lambda wildcards: wildcards.captioner),
