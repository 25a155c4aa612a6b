# Pictures and captions, whatever their source, become one manifest.


rule data:
    output:
        experiment.data.besides,
        manifest="results/{experiment}/data/manifest.json",
        images="results/{experiment}/data/images.parquet",
        captions="results/{experiment}/data/captions.parquet",
        rejected="results/{experiment}/data/rejected.csv",
    log:
        "results/{experiment}/logs/data.log",
    benchmark:
        "results/{experiment}/benchmarks/data.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        command=experiment.data.read.module,
        folder=subpath(output.manifest, parent=True),
        settings=experiment.data.read.settings,
        made_from=experiment.data.read.made_from,
    shell:
        "python -m vitcapr.cli.{params.command} --output-dir {params.folder:q}"
        " --settings {params.settings:q} --log {log:q}"
