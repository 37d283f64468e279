"""The folder of a project: a repository, or the folder itself."""

import os
from pathlib import Path


def find_project_root(folder: Path) -> Path:
    """Return the repository that a folder is in, else the folder."""
    repositories = (each for each in (folder, *folder.parents) if (each / ".git").exists())
    return next(repositories, folder)


def resolve_path(path: str) -> str:
    """Return a path with links resolved; a text of a transcript that is no path, as it is."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL in it
        return path


def is_within(folder: str, root: str) -> bool:
    """Whether a folder is the other one or below it, with links resolved."""
    real, top = resolve_path(folder), resolve_path(root)
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)
