# The images and captions of any data set -> one manifest.


dataset = getattr(stages, experiment.data_stage)


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
        **dataset(sources=experiment.data_files),
    shell:
        "{params.command} --log {log:q}"


rule describe_data:
    input:
        manifest="results/{experiment}/data/manifest.json",
    output:
        croissant="results/{experiment}/data/croissant.json",
    log:
        "results/{experiment}/logs/describe_data.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **stages.describe_data(),
    shell:
        "{params.command} --log {log:q}"
