from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage(cached=True)
def audit_data(
    features: In[kinds.FeaturesFile],
    text_features: In[kinds.TextFeaturesFile],
    manifest: In[kinds.ManifestFile],
    name: Annotated[str, "Name of the audit"],
    report: Reporter,
    captions: Annotated[Out[kinds.TableFile], "audit.parquet: a row for each caption"],
    leaks: Annotated[Out[kinds.TableFile], "leaks.csv: pairs of equal and nearly equal images"],
    table: Annotated[Out[kinds.TableFile], "tables.md: the counts"],
    pictures: Annotated[Out[kinds.PageFile], "index.html: the most suspicious captions with their pictures"],
    page: Out[kinds.PageSectionFile],
) -> None:
    """Find wrong captions, leaks between splits and odd captions from two stores, as ``vitcapr pairs audit`` does."""
    from vitcapr.extensions.audit.audit import audit
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tables import PageSection, write_page_section
    from vitcapr.store.reader import open_features

    result = audit(read_manifest(manifest), open_features(features), open_features(text_features), report)
    result.write(captions, leaks, table, pictures)
    note = f"The most suspicious captions are in audits/{name}/index.html."
    write_page_section(page, PageSection(f"audit-{name}", f"Audit {name}", note, [result.counts], result.look))
