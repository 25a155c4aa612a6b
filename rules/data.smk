# The images and captions of any data set -> one manifest.


dataset = getattr(stages, experiment.data.stage)


rule data:
    output:
        folder=multiext(
            "results/{experiment}/data/", *dataset.stage.parameters["folder"].files
        ),
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
        **dataset(sources=experiment.data.files),
    shell:
        "{params.command} --log {log:q}"
