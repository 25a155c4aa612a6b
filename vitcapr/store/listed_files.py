"""Files that travel with a list of their sizes and digests: a published model, a publication of results."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from vitcapr.files import DigestedFile
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import Digest
from vitcapr.progress import Reporter
from vitcapr.store.remote_folder import MOST_OF_A_LIST, RemoteFolder
from vitcapr.store.writer import claimed, remove_partials

_MOST = 16 * 2**30
"""Bytes of all files of a list."""
Part = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""Pattern of a part of a path: never hidden, never ``..``."""
FileName = Annotated[str, StringConstraints(pattern=rf"^{Part}(/{Part}){{0,9}}$", max_length=500)]


class ListedFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    size: int = Field(ge=0)
    sha256: Digest


class FileList(BaseModel):
    """The list of the files of a folder, without itself. It may come from a person who is not trusted."""

    model_config = ConfigDict(strict=True, extra="forbid")

    files: dict[FileName, ListedFile]

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        folders = {folder.as_posix() for name in self.files for folder in PurePosixPath(name).parents}
        if both := sorted(folders & self.files.keys()):
            raise ValueError(f"it lists {both[0]} as a file and as a folder")
        if (size := sum(file.size for file in self.files.values())) > _MOST:
            raise ValueError(f"its files have {size} bytes, more than {_MOST}")
        return self


L = TypeVar("L", bound=FileList)


def list_files(paths: Mapping[str, Path]) -> dict[str, ListedFile]:
    """Return the size and the digest of each file, by its name in the list."""
    files = {name: DigestedFile.at(path) for name, path in paths.items()}
    return {name: ListedFile(size=file.size, sha256=file.sha256) for name, file in files.items()}


def push_list(place: RemoteFolder, name: str, listed: FileList, paths: Mapping[str, Path], report: Reporter) -> bytes:
    """Copy files to a folder, write their list under ``name`` as the last file, and return its bytes."""
    content = listed.model_dump_json(indent=2).encode("utf-8")
    files = {file: DigestedFile(paths[file], facts.size, facts.sha256) for file, facts in listed.files.items()}
    place.push(files, {name: content}, report)
    return content


def read_list(place: RemoteFolder, name: str, kind: type[L], what: str, remedy: str) -> tuple[L, bytes]:
    """Return the list of the files in a folder, checked, and its bytes.

    Raises:
        UserError: there is no such list, or it is none.
    """
    with reading(place.url, f"{what}: {name}", remedy):
        content = place.read(name, MOST_OF_A_LIST)
        return kind.model_validate_json(content), content


def pull_list(place: RemoteFolder, listed: FileList, folder: Path, report: Reporter) -> None:
    """Copy the listed files to ``folder``; what is there with its digest is not fetched again.

    Raises:
        UserError: a file is missing, or is not what the list says.
    """
    files = {name: DigestedFile(folder / name, facts.size, facts.sha256) for name, facts in listed.files.items()}
    remove_partials(folder)
    with claimed(folder, range(1), report.line):
        place.pull(files, report)
