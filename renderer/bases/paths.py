"""References of kustomizations: paths within the tree, and what kustomize would fetch instead."""

from __future__ import annotations

import posixpath
import re

_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_SCHEME = re.compile(r"(?:git::)?(?:https?|ssh|file)://", re.IGNORECASE)
_USER = r"[a-zA-Z][a-zA-Z0-9-]*@"
_HOST = re.compile(rf"(?:git::)?(?:{_USER}[^/:]*[/:]|(?:{_USER})?github\.com[/:])", re.IGNORECASE)
_REPOSITORY = re.compile(r"_git/|//|\.git|/")


def resolve(folder: str, reference: str) -> str | None:
    """The path from the root that a reference in `folder` means; none where it is absolute or leaves the root."""
    if not reference or _ABSOLUTE.match(reference) or "\\" in reference:
        return None
    path = posixpath.normpath(posixpath.join(folder, reference))
    if path == ".." or path.startswith("../"):
        return None
    return "" if path == "." else path


def within(path: str, folder: str) -> bool:
    """Whether a path is the folder itself or lies below it."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def relative(path: str, folder: str) -> str:
    """How a kustomization in `folder` refers to a path."""
    return posixpath.relpath(f"/{path}", f"/{folder}")


def remote(reference: str) -> bool:
    """Whether kustomize would fetch this.  Source: kustomize, api/internal/git/repospec.go, NewRepoSpecFromURL."""
    if _SCHEME.match(reference):
        return True
    host = _HOST.match(reference)
    return host is not None and _REPOSITORY.search(reference, host.end()) is not None
