"""``croissant.json``: what a data set is, for search engines and for loaders of other programs (Croissant 1.0).

The format is that of MLCommons, https://docs.mlcommons.org/croissant/docs/croissant-spec.html. It describes the two
tables of the manifest. The photographs are not among its files; ``images.path`` names them.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from vitcapr.files import sha256_file, write_json
from vitcapr.formats.manifest import CAPTIONS, IMAGES, Manifest

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
_TERMS = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset "
    "jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
    "subField transform"
)
CONTEXT = {
    **{term: f"cr:{term}" for term in _TERMS.split()},
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
"""The context that the specification gives."""


def write_croissant(path: Path, data: Manifest, name: str, licence: str | None, source: str | None) -> None:
    """Write the description of a data set.

    Args:
        path: in the folder of the manifest and its tables.
        name: of the data set in this experiment.
        licence: None if it is not known.
        source: where the data come from, an address or a sentence; None if it is not known.
    """
    splits = data.image_table.column("split").value_counts().sort_index()
    languages = sorted(data.caption_table.column("language").unique())
    counts = ", ".join(f"{number} {split}" for split, number in splits.items())
    sentences = [
        f"{len(data.image_table)} images ({counts}) with {len(data.caption_table)} captions in {', '.join(languages)},",
        "as vitcapr reads them: images.path is relative to image_root of manifest.json.",
        f"Data set: {data.dataset}.",
        *([f"Source: {source}."] if source else []),
    ]
    described: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": name,
        "description": " ".join(sentences),
        "inLanguage": languages,
        "distribution": [_file(path.with_name(f"{table}.parquet")) for table in ("images", "captions")],
        "recordSet": [_records("images", IMAGES, "image_id"), _records("captions", CAPTIONS, "caption_id")],
    }
    if licence:
        described["license"] = licence
    if source and source.startswith(("https://", "http://")):
        described["url"] = source
    write_json(path, described)


def _file(path: Path) -> dict[str, str]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "encodingFormat": "application/x-parquet",
        "sha256": sha256_file(path),
    }


def _records(table: str, columns: pa.Schema, key: str) -> dict[str, Any]:
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{table}/{column.name}",
            "name": column.name,
            "dataType": "sc:Integer" if pa.types.is_integer(column.type) else "sc:Text",
            "source": {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column.name}},
        }
        for column in columns
    ]
    if table == "captions":
        fields[columns.get_field_index("image_id")]["references"] = {"field": {"@id": "images/image_id"}}
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "key": {"@id": f"{table}/{key}"},
        "field": fields,
    }
