# Figures for the report and for print, every one from files that a reader can open.


rule draw_curves:
    input:
        histories=experiment.histories,
        backbone=experiment.backbone_history,
    output:
        report(
            experiment.curve_pictures("results/{experiment}"),
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
        histories=experiment.histories_option,
        backbone=experiment.backbone_history_option,
        settings=experiment.drawing("curves").settings,
        made_from=experiment.drawing("curves").made_from,
    shell:
        "python -m vitcapr.cli.draw_curves {params.histories} {params.backbone} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_text:
    input:
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
        tokens="results/{experiment}/text/tokens.npz",
    output:
        report(
            experiment.pictures("results/{experiment}/figures/text/vocabulary"),
            caption="../workflow/report/vocabulary.rst",
            category="Data",
            labels={"figure": "word frequencies"},
        ),
        report(
            experiment.pictures("results/{experiment}/figures/text/lengths"),
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
        settings=experiment.drawing("text").settings,
        made_from=experiment.drawing("text").made_from,
    shell:
        "python -m vitcapr.cli.draw_text --manifest {input.manifest:q} --vocabulary {input.vocabulary:q}"
        " --tokens {input.tokens:q} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_captions:
    input:
        captions=experiment.captions_of_split,
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.pictures(
                "results/{experiment}/figures/captions/{split}/captions"
            ),
            caption="../workflow/report/captions.rst",
            category="Captions",
            labels={"figure": "captioned images", "split": "{split}"},
        ),
    log:
        "results/{experiment}/logs/draw_captions/{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        captions=experiment.captions_option,
        language=experiment.config.text.language,
        settings=experiment.drawing("captions").settings,
        made_from=experiment.drawing("captions").made_from,
    shell:
        "python -m vitcapr.cli.draw_captions {params.captions} --manifest {input.manifest:q}"
        " --split {wildcards.split} --language {params.language} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule draw_attention:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.attention_pictures(
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
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=15,
    params:
        folder=subpath(output[0], parent=True),
        settings=experiment.drawing("attention").settings,
        made_from=experiment.drawing("attention").made_from,
    shell:
        "python -m vitcapr.cli.draw_attention --captions {input.captions:q} --attention {input.attention:q}"
        " --manifest {input.manifest:q} --split {wildcards.split} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"
