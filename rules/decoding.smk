# A captioner -> captions, and the attention for every word if the decoding has attention: true.


use rule gpu_job as decode with:
    input:
        features=captioning.features,
        manifest=paths.MANIFEST,
        vocabulary=captioning.vocabulary,
        captioner=stages.decode.folder("captioner", paths.CAPTIONER),
    output:
        captions=paths.CAPTIONS,
    log:
        paths.log("decode", "captioner", "decoding", "split"),
    wildcard_constraints:
        decoding=one_of(models.needed_decodings),
    priority: 20
    resources:
        **stages.decode.on_gpu(runtime=120),
    params:
        **stages.decode(),


use rule decode as decode_attentively with:
    output:
        captions=paths.CAPTIONS,
        attention=paths.ATTENTION,
    wildcard_constraints:
        captioner=one_of(captioning.attentive_captioners),
        decoding=one_of(models.attentive_decodings),
        split=one_of(models.splits),


ruleorder: decode_attentively > decode
