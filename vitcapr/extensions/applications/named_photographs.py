"""Photographs that a command names: files, folders, or patterns that the shell has left alone."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.data.archive import is_junk


def find_photographs(arguments: Sequence[str]) -> tuple[list[Path], dict[str, str], dict[str, int]]:
    """Return the files that the arguments name, each once, in the order of the arguments and by name within one.

    A folder stands for the pictures in it, known by their endings; a pattern may contain ``**``.

    Returns:
        The files; the arguments that name none, each with the reason; and for each folder that has them, the number of
        files that are no pictures by their endings, without hidden files and our own figures.
    """
    images: dict[Path, None] = {}
    nothing: dict[str, str] = {}
    skipped: dict[str, int] = {}
    for argument in arguments:
        path = Path(argument).expanduser()
        if path.is_dir():
            inside = [file for file in path.iterdir() if file.is_file() and not is_junk(file.name)]
            files, reason = [file for file in inside if _is_picture(file)], "no picture in this folder"
            if len(files) < len(inside):
                skipped[argument] = len(inside) - len(files)
        elif path.exists():
            files, reason = [path], ""
        elif set("*?[") & set(argument):
            root = Path(path.anchor)
            matches = root.glob(str(path.relative_to(root)))
            files, reason = [file for file in matches if _is_picture(file)], "no picture matches"
        else:
            files, reason = [], "no such file"
        if not files:
            nothing[argument] = reason
        images.update(dict.fromkeys(sorted(files)))
    return list(images), nothing, skipped


def _is_picture(path: Path) -> bool:
    from vitcapr.data.images import SUFFIXES  # numpy and Pillow load for a mistake in a path otherwise

    return path.name.lower().endswith(SUFFIXES) and not is_junk(path.name) and path.is_file()
