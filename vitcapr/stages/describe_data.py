from typing import Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.features import Terms
from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


class DescribeDataSettings(StageSettings):
    name: str = "data"
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(name=config.experiment, terms=Terms.of(config.data))


@stage()
def describe_data(
    manifest: In[kinds.ManifestFile],
    settings: DescribeDataSettings,
    report: Reporter,
    croissant: Out[kinds.CroissantFile],
) -> None:
    """Write croissant.json, the description of the data set for other programs, with licence and source."""
    from vitcapr.formats.croissant import write_croissant
    from vitcapr.formats.manifest import read_manifest

    terms = settings.terms
    if croissant.parent.resolve() != manifest.parent.resolve():
        raise UserError("the description belongs beside the manifest", where=croissant, remedy="correct its path")
    write_croissant(croissant, read_manifest(manifest), settings.name, terms.licence, terms.source)
    report.line(f"licence: {terms.licence or 'not known'}; source: {terms.source or 'not known'}")
