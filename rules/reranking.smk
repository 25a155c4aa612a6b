# The candidates of a decoding in a new order. The weight of the retriever is chosen on the validation split.


rule tune_reranking:
    input:
        experiment.reranking.retriever_of,
        captions=experiment.reranking.validation_candidates_of,
        features=experiment.reranking.features_of,
        views=experiment.reranking.views_of,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        weight="results/{experiment}/reranking/{captioner}/{reranking}/weight.json",
    log:
        "results/{experiment}/logs/tune_reranking/{captioner}.{reranking}.log",
    priority: 20
    conda:
        "../envs/gpu.yaml"
    threads: 4
    resources:
        gpu=stages.embed.gpus,
        mem_mb=8000,
        runtime=60,
    params:
        retriever=subpath(input[0], parent=True),
        views=experiment.reranking.views_option,
        settings=experiment.reranking.tune.settings,
        made_from=experiment.reranking.tune.made_from,
    shell:
        "python -m vitcapr.cli.tune_reranking --captions {input.captions:q} --features {input.features:q} {params.views}"
        " --manifest {input.manifest:q} --vocabulary {input.vocabulary:q} --retriever {params.retriever:q}"
        " --output {output.weight:q} --settings {params.settings:q} --log {log:q}"


rule rerank:
    input:
        experiment.reranking.retriever_of,
        captions=experiment.reranking.candidates_of,
        weight="results/{experiment}/reranking/{captioner}/{reranking}/weight.json",
        features=experiment.reranking.features_of,
        views=experiment.reranking.views_of,
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        captions="results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
    log:
        "results/{experiment}/logs/rerank/{captioner}.{reranking}.{split}.log",
    wildcard_constraints:
        reranking=one_of(experiment.chosen.tuned_rerankings),
    priority: 20
    conda:
        "../envs/gpu.yaml"
    threads: 4
    resources:
        gpu=stages.embed.gpus,
        mem_mb=8000,
        runtime=60,
    params:
        retriever=subpath(input[0], parent=True),
        views=experiment.reranking.views_option,
        settings=experiment.reranking.rerank.settings,
        made_from=experiment.reranking.rerank.made_from,
    shell:
        "python -m vitcapr.cli.rerank --captions {input.captions:q} --weight {input.weight:q}"
        " --features {input.features:q} {params.views} --manifest {input.manifest:q} --vocabulary {input.vocabulary:q}"
        " --retriever {params.retriever:q} --split {wildcards.split} --output {output.captions:q}"
        " --settings {params.settings:q} --log {log:q}"


rule rerank_oracle:
    input:
        captions=experiment.reranking.candidates_of,
        manifest="results/{experiment}/data/manifest.json",
    output:
        captions="results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
    log:
        "results/{experiment}/logs/rerank/{captioner}.{reranking}.{split}.log",
    wildcard_constraints:
        reranking=one_of(experiment.chosen.oracles),
    priority: 20
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=experiment.reranking.oracle.settings,
        made_from=experiment.reranking.oracle.made_from,
    shell:
        "python -m vitcapr.cli.rerank_oracle --captions {input.captions:q} --manifest {input.manifest:q}"
        " --split {wildcards.split} --output {output.captions:q}"
        " --settings {params.settings:q} --log {log:q}"
