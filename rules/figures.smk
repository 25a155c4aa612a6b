# One rule for each stage that declares a figure: vitcapr/stages/draw_*.py.

for figure in experiment.figure_rules:

    rule:
        name:
            figure.stage.name
        input:
            **figure.inputs,
        output:
            **{
                name: report(table, **figure.in_report)
                for name, table in figure.tables.items()
            },
            pictures=report(figure.pictures, **figure.in_report),
        log:
            figure.log,
        wildcard_constraints:
            **figure.constraints,
        priority: figure.figure.priority
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            **growing(runtime=60),
        params:
            **figure.params,
        shell:
            "{params.command} --log {log:q}"
