# The ViT that is trained on rendered scenes, and what captions and attention say of known scenes.


use rule gpu_job as train_backbone with:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        backbone=stages.train_backbone.folder("backbone", "backbones/trained"),
    log:
        "results/{experiment}/logs/train_backbone.log",
    priority: 20
    resources:
        **stages.train_backbone.on_gpu(runtime=120),
    params:
        **stages.train_backbone(),


use rule cpu_job as score_grounding with:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        manifest="results/{experiment}/data/manifest.json",
        vocabulary=captioning.vocabulary,
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/grounding.json",
    log:
        "results/{experiment}/logs/score_grounding/{captioner}.{decoding}.{split}.log",
    params:
        **stages.score_grounding(model=lambda wildcards: wildcards.captioner),


use rule cpu_job as check_claims with:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/claims.json",
        claims="results/{experiment}/captions/{captioner}/{decoding}/{split}/claims.json",
    log:
        "results/{experiment}/logs/check_claims/{captioner}.{decoding}.{split}.log",
    params:
        **stages.check_claims(model=lambda wildcards: wildcards.captioner),
