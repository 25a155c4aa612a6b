# Figures for the report and for print. Each is a stage that declares its rule: vitcapr/stages/draw_*.py.

for figure in experiment.figure_rules:

    rule:
        name:
            figure.name
        input:
            **figure.inputs,
        output:
            **figure.tables,
            pictures=report(
                figure.pictures,
                caption="../workflow/report/figure.rst",
                category=figure.figure.category,
                subcategory=figure.figure.subcategory,
                labels=figure.figure.labels,
            ),
        log:
            figure.log,
        wildcard_constraints:
            **figure.constraints,
        priority: figure.figure.priority
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            mem_mb=figure.figure.mem_mb,
            runtime=figure.figure.runtime,
        params:
            **figure.params,
        shell:
            "{params.command} --log {log:q}"


rule draw_curves:
    input:
        histories=experiment.captioning.histories,
        retrievers=experiment.retrieval.histories,
        backbone=experiment.figures.backbone_history,
    output:
        report(
            experiment.figures.curves("results/{experiment}"),
            caption="../workflow/report/curves.rst",
            category="Training",
            labels={"figure": "training curves"},
        ),
    log:
        "results/{experiment}/logs/draw_curves.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        histories=experiment.captioning.histories_option,
        retrievers=experiment.retrieval.histories_option,
        backbone=experiment.figures.backbone_history_option,
        settings=experiment.figures.draw("curves").settings,
        made_from=experiment.figures.draw("curves").made_from,
    shell:
        "python -m vitcapr.cli.draw_curves {params.histories} {params.retrievers} {params.backbone}"
        " --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_text:
    input:
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
    output:
        report(
            experiment.figures.pictures(
                "results/{experiment}/figures/text/vocabulary"
            ),
            caption="../workflow/report/vocabulary.rst",
            category="Data",
            labels={"figure": "word frequencies"},
        ),
        report(
            experiment.figures.pictures("results/{experiment}/figures/text/lengths"),
            caption="../workflow/report/lengths.rst",
            category="Data",
            labels={"figure": "caption lengths"},
        ),
    log:
        "results/{experiment}/logs/draw_text.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        settings=experiment.figures.draw("text").settings,
        made_from=experiment.figures.draw("text").made_from,
    shell:
        "python -m vitcapr.cli.draw_text --manifest {input.manifest:q} --vocabulary {input.vocabulary:q}"
        " --tokens {input.tokens:q} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_attention:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.attention(
                "results/{experiment}/figures/attention/{captioner}/{decoding}/{split}/"
            ),
            caption="../workflow/report/attention.rst",
            category="Attention",
            subcategory="{captioner}",
            labels={
                "figure": "attention by word",
                "decoding": "{decoding}",
                "split": "{split}",
            },
        ),
    log:
        "results/{experiment}/logs/draw_attention/{captioner}.{decoding}.{split}.log",
    priority: 5
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        settings=experiment.figures.draw("attention").settings,
        made_from=experiment.figures.draw("attention").made_from,
    shell:
        "python -m vitcapr.cli.draw_attention --captions {input.captions:q} --attention {input.attention:q}"
        " --manifest {input.manifest:q} --split {wildcards.split} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_reranked:
    input:
        before=experiment.reranking.candidates_of,
        after="results/{experiment}/captions/{captioner}/{reranking}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.pictures(
                "results/{experiment}/figures/reranked/{captioner}/{reranking}/{split}/reranked"
            ),
            caption="../workflow/report/reranked.rst",
            category="Captions",
            labels={"figure": "before and after reranking", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_reranked/{captioner}.{reranking}.{split}.log",
    priority: 5
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        language=experiment.config.text.language,
        settings=experiment.figures.draw("reranked").settings,
        made_from=experiment.figures.draw("reranked").made_from,
    shell:
        "python -m vitcapr.cli.draw_reranked --before {input.before:q} --after {input.after:q}"
        " --manifest {input.manifest:q} --split {wildcards.split} --language {params.language}"
        " --output-dir {params.folder:q} --settings {params.settings:q} --log {log:q}"


rule draw_recall:
    input:
        experiment.retrieval.scores_of_split,
    output:
        report(
            experiment.figures.pictures(
                "results/{experiment}/figures/recall/{split}/recall"
            ),
            caption="../workflow/report/recall.rst",
            category="Retrieval",
            labels={"figure": "recall of all retrievers", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_recall/{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        scores=experiment.retrieval.scores_option,
        settings=experiment.figures.draw("recall").settings,
        made_from=experiment.figures.draw("recall").made_from,
    shell:
        "python -m vitcapr.cli.draw_recall {params.scores} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_embeddings:
    input:
        experiment.figures.features_before,
        embeddings="results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.embeddings(
                "results/{experiment}/figures/embeddings/{retriever}/{split}/"
            ),
            caption="../workflow/report/embeddings.rst",
            category="Retrieval",
            subcategory="{retriever}",
            labels={"figure": "the shared space", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_embeddings/{retriever}.{split}.log",
    wildcard_constraints:
        retriever=one_of(experiment.chosen.ranked),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        folder=subpath(output[0], parent=True),
        before=experiment.figures.features_before_option,
        settings=experiment.figures.draw("embeddings").settings,
        made_from=experiment.figures.draw("embeddings").made_from,
    shell:
        "python -m vitcapr.cli.draw_embeddings --embeddings {input.embeddings:q} --manifest {input.manifest:q}"
        " {params.before}"
        " --output-dir {params.folder:q} --settings {params.settings:q} --log {log:q}"


rule draw_retrieved:
    input:
        embeddings="results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
        ranks="results/{experiment}/metrics/retrieval/{retriever}/{split}/ranks.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.retrieved(
                "results/{experiment}/figures/retrieved/{retriever}/{split}/"
            ),
            caption="../workflow/report/retrieved.rst",
            category="Retrieval",
            subcategory="{retriever}",
            labels={"figure": "failures", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_retrieved/{retriever}.{split}.log",
    wildcard_constraints:
        retriever=one_of(experiment.chosen.ranked),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        settings=experiment.figures.draw("retrieved").settings,
        made_from=experiment.figures.draw("retrieved").made_from,
    shell:
        "python -m vitcapr.cli.draw_retrieved --embeddings {input.embeddings:q} --ranks {input.ranks:q}"
        " --manifest {input.manifest:q} --split {wildcards.split} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_side_by_side:
    input:
        embeddings=experiment.figures.compared_embeddings,
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.compared(
                "results/{experiment}/figures/side_by_side/{language}/{split}/"
            ),
            caption="../workflow/report/side_by_side.rst",
            category="Retrieval",
            labels={
                "figure": "models side by side",
                "language": "{language}",
                "split": "{split}",
            },
        ),
    log:
        "results/{experiment}/logs/draw_side_by_side/{language}.{split}.log",
    wildcard_constraints:
        language=one_of(list(experiment.chosen.compared)),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        embeddings=experiment.figures.compared_option,
        settings=experiment.figures.draw("side_by_side").settings,
        made_from=experiment.figures.draw("side_by_side").made_from,
    shell:
        "python -m vitcapr.cli.draw_side_by_side {params.embeddings} --manifest {input.manifest:q}"
        " --split {wildcards.split} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_learning_curve:
    input:
        experiment.figures.trainings,
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.pictures(
                "results/{experiment}/figures/learning_curve/{split}/learning_curve"
            ),
            caption="../workflow/report/learning_curve.rst",
            category="Retrieval",
            labels={"figure": "recall over training pairs", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_learning_curve/{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        trained=experiment.figures.trainings_option,
        language=experiment.config.text.language,
        settings=experiment.figures.draw("learning_curve").settings,
        made_from=experiment.figures.draw("learning_curve").made_from,
    shell:
        "python -m vitcapr.cli.draw_learning_curve {params.trained} --manifest {input.manifest:q}"
        " --language {params.language} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_rollout:
    input:
        experiment.figures.trained_backbone_of,
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.pictures(
                "results/{experiment}/figures/rollout/{captioner}/{decoding}/{split}/rollout"
            ),
            caption="../workflow/report/rollout.rst",
            category="Attention",
            subcategory="{captioner}",
            labels={
                "figure": "backbone beside captioner",
                "decoding": "{decoding}",
                "split": "{split}",
            },
        ),
    log:
        "results/{experiment}/logs/draw_rollout/{captioner}.{decoding}.{split}.log",
    priority: 5
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        source=experiment.figures.backbone_source,
        folder=subpath(output[0], parent=True),
        settings=experiment.figures.draw_rollout.settings,
        made_from=experiment.figures.draw_rollout.made_from,
    shell:
        "python -m vitcapr.cli.draw_rollout --captions {input.captions:q} --attention {input.attention:q}"
        " --manifest {input.manifest:q} --split {wildcards.split} --source {params.source:q}"
        " --output-dir {params.folder:q} --settings {params.settings:q} --log {log:q}"


rule draw_gpu:
    input:
        experiment.figures.gpu_uses,
    output:
        report(
            experiment.figures.pictures("results/{experiment}/figures/gpu/gpu"),
            caption="../workflow/report/gpu.rst",
            category="Training",
            labels={"figure": "GPU use and memory"},
        ),
    log:
        "results/{experiment}/logs/draw_gpu.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        uses=experiment.figures.gpu_uses_option,
        settings=experiment.figures.draw("gpu").settings,
        made_from=experiment.figures.draw("gpu").made_from,
    shell:
        "python -m vitcapr.cli.draw_gpu {params.uses} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"
