# Captions become scores, scores become tables.


rule paraphrases:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        card="results/{experiment}/text/paraphrases/{split}/card.json",
        table="results/{experiment}/text/paraphrases/{split}/table.gz",
    log:
        "results/{experiment}/logs/paraphrases/{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        folder=subpath(output.card, parent=True),
        settings=experiment.metrics.paraphrases.settings,
        made_from=experiment.metrics.paraphrases.made_from,
    shell:
        "python -m vitcapr.cli.paraphrases --manifest {input.manifest:q} --split {wildcards.split}"
        " --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"


rule score:
    input:
        experiment.metrics.paraphrases_of,
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/metrics.json",
        per_image="results/{experiment}/metrics/{captioner}/{decoding}/{split}/per_image.parquet",
    log:
        "results/{experiment}/logs/score/{captioner}.{decoding}.{split}.log",
    benchmark:
        "results/{experiment}/benchmarks/score/{captioner}.{decoding}.{split}.tsv"
    priority: 10
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        paraphrases=experiment.metrics.paraphrases_option,
        settings=experiment.metrics.score.settings,
        made_from=experiment.metrics.score.made_from,
    shell:
        "python -m vitcapr.cli.score --captions {input.captions:q} --manifest {input.manifest:q}"
        " --vocabulary {input.vocabulary:q} {params.paraphrases} --split {wildcards.split}"
        " --model {wildcards.captioner} --decoding {wildcards.decoding}"
        " --output {output.metrics:q} --per-image {output.per_image:q}"
        " --settings {params.settings:q} --log {log:q}"


rule ground:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        attention="results/{experiment}/captions/{captioner}/{decoding}/{split}/attention.npz",
        manifest="results/{experiment}/data/manifest.json",
        vocabulary="results/{experiment}/text/vocabulary.json",
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/grounding.json",
    log:
        "results/{experiment}/logs/ground/{captioner}.{decoding}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=experiment.metrics.ground.settings,
        made_from=experiment.metrics.ground.made_from,
    shell:
        "python -m vitcapr.cli.ground --captions {input.captions:q} --attention {input.attention:q}"
        " --manifest {input.manifest:q} --vocabulary {input.vocabulary:q} --split {wildcards.split}"
        " --model {wildcards.captioner} --decoding {wildcards.decoding}"
        " --output {output.metrics:q}"
        " --settings {params.settings:q} --log {log:q}"


rule check_facts:
    input:
        captions="results/{experiment}/captions/{captioner}/{decoding}/{split}/captions.json",
        manifest="results/{experiment}/data/manifest.json",
    output:
        metrics="results/{experiment}/metrics/{captioner}/{decoding}/{split}/facts.json",
    log:
        "results/{experiment}/logs/check_facts/{captioner}.{decoding}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=experiment.metrics.check_facts.settings,
        made_from=experiment.metrics.check_facts.made_from,
    shell:
        "python -m vitcapr.cli.check_facts --captions {input.captions:q} --manifest {input.manifest:q}"
        " --split {wildcards.split} --model {wildcards.captioner} --decoding {wildcards.decoding}"
        " --output {output.metrics:q} --settings {params.settings:q} --log {log:q}"


rule summary:
    input:
        metrics=experiment.metrics.files,
    output:
        summary=report(
            "results/{experiment}/summary.csv",
            caption="../workflow/report/summary.rst",
            category="Scores",
            labels={"table": "all scores, tidy"},
        ),
        table=report(
            "results/{experiment}/tables/scores.md",
            caption="../workflow/report/scores.rst",
            category="Scores",
            labels={"table": "scores"},
        ),
    log:
        "results/{experiment}/logs/summary.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        made_from=experiment.metrics.summary.made_from,
    shell:
        "python -m vitcapr.cli.summary {input.metrics:q} --experiment {wildcards.experiment}"
        " --output {output.summary:q} --table {output.table:q} --collect results/summary.csv --log {log:q}"


rule spread:
    input:
        summary="results/{experiment}/summary.csv",
    output:
        spread="results/{experiment}/tables/spread.csv",
        pairs="results/{experiment}/tables/spread_pairs.csv",
        table=report(
            "results/{experiment}/tables/spread.md",
            caption="../workflow/report/spread.rst",
            category="Scores",
            labels={"table": "over seeds"},
        ),
    log:
        "results/{experiment}/logs/spread.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=experiment.metrics.spread.settings,
        made_from=experiment.metrics.spread.made_from,
    shell:
        "python -m vitcapr.cli.spread {input.summary:q} --output {output.spread:q} --pairs {output.pairs:q}"
        " --table {output.table:q} --settings {params.settings:q} --log {log:q}"


rule compare:
    input:
        before=experiment.metrics.before,
        after=[
            "results/{experiment}/metrics/{captioner}/{decoding}/{split}/metrics.json",
            "results/{experiment}/metrics/{captioner}/{decoding}/{split}/per_image.parquet",
        ],
    output:
        comparison="results/{experiment}/comparisons/{captioner}/{decoding}/{split}/comparison.json",
        table=report(
            "results/{experiment}/comparisons/{captioner}/{decoding}/{split}/comparison.md",
            caption="../workflow/report/comparison.rst",
            category="Scores",
            labels={"table": "before and after", "system": "{captioner} {decoding}"},
        ),
    log:
        "results/{experiment}/logs/compare/{captioner}.{decoding}.{split}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=experiment.metrics.compare.settings,
        made_from=experiment.metrics.compare.made_from,
    shell:
        "python -m vitcapr.cli.compare --before {input.before[0]:q} --before-images {input.before[1]:q}"
        " --after {input.after[0]:q} --after-images {input.after[1]:q}"
        " --output {output.comparison:q} --table {output.table:q}"
        " --settings {params.settings:q} --log {log:q}"


rule paper_tables:
    input:
        summary="results/{experiment}/summary.csv",
        comparisons=experiment.metrics.comparisons,
        cards=experiment.metrics.cards,
        ranks=experiment.metrics.ranks,
    output:
        page=report(
            "results/{experiment}/tables/{paper}/{paper}.md",
            caption="../workflow/report/paper_page.rst",
            category="Beside the paper",
            labels={"table": "paper, this build, literature"},
        ),
        latex=report(
            "results/{experiment}/tables/{paper}/{paper}.tex",
            caption="../workflow/report/paper_latex.rst",
            category="Beside the paper",
            labels={"table": "the same for LaTeX"},
        ),
        numbers=report(
            "results/{experiment}/tables/{paper}/{paper}.csv",
            caption="../workflow/report/paper_numbers.rst",
            category="Beside the paper",
            labels={"table": "the published numbers"},
        ),
    log:
        "results/{experiment}/logs/paper_tables/{paper}.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        folder=subpath(output.page, parent=True),
        comparisons=experiment.metrics.comparisons_option,
        cards=experiment.metrics.cards_option,
        trainings=experiment.metrics.trainings_option,
        ranks=experiment.metrics.ranks_option,
        made_from=experiment.metrics.paper_tables.made_from,
    shell:
        "python -m vitcapr.cli.paper_tables {input.summary:q} --paper {wildcards.paper} {params.comparisons}"
        " {params.cards} {params.trainings} {params.ranks} --output-dir {params.folder:q} --log {log:q}"
