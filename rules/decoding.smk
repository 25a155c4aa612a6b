# A captioner -> captions, and the attention for every word if the decoding has attention: true.


use rule gpu_job as decode with:
    input:
        features=captioning.features,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary=captioning.vocabulary,
        captioner=stages.decode.folder("captioner", "captioners/{captioner}"),
    output:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
    log:
        "results/{experiment}/logs/decode/{captioner}.{decoding}.{split}.log",
    wildcard_constraints:
        decoding=one_of(models.needed_decodings),
    priority: 20
    resources:
        **stages.decode.on_gpu(runtime=120),
    params:
        **stages.decode(),


use rule decode as decode_attentively with:
    output:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
    wildcard_constraints:
        captioner=one_of(captioning.attentive_captioners),
        decoding=one_of(models.attentive_decodings),
        split=one_of(models.splits),


ruleorder: decode_attentively > decode
