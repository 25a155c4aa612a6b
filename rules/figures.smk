# Figures for the report and for print, every one from files that a reader can open.


rule draw_curves:
    input:
        histories=experiment.captioning.histories,
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
        backbone=experiment.figures.backbone_history_option,
        settings=experiment.figures.draw("curves").settings,
        made_from=experiment.figures.draw("curves").made_from,
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


rule draw_captions:
    input:
        captions=experiment.captioning.captions_of_split,
        manifest="results/{experiment}/data/manifest.json",
    output:
        report(
            experiment.figures.pictures(
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
        captions=experiment.captioning.captions_option,
        language=experiment.config.text.language,
        settings=experiment.figures.draw("captions").settings,
        made_from=experiment.figures.draw("captions").made_from,
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
