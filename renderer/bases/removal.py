"""Components that are about to go, and the kustomizations that still list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from renderer.bases.files import NAMES, Files
from renderer.bases.kustomization import Kustomization, Kustomizations
from renderer.bases.paths import resolve
from renderer.model import Entry, Problem, Tree, TreeError

_COMPONENT = b"\nkind: Component"
_SKIPPED = "node_modules"


def still_listed(tree: Tree, overlays: str, forms: Mapping[str, str]) -> Iterator[tuple[str, Problem]]:
    """Each line that lists a component which the next render removes, with the cluster that it belonged to.

    `forms` holds the form of the operator object of every cluster.  The tree is searched only where a component
    stands in the overlays that none of them renders: a search takes some 70 ms for 1,000 folders.
    """
    leaving = {f"{overlays}/{cluster}/operator": cluster for cluster in _leaving(tree, overlays, forms)}
    if not leaving:
        return
    kustomizations = Kustomizations(Files(tree))
    for folder in _naming(tree, "", overlays):
        found = kustomizations.load(folder, None)
        for reference in found.components if isinstance(found, Kustomization) else ():
            cluster = leaving.get(resolve(folder, reference.text) or "")
            if cluster is not None:
                message = f"{reference.text} is listed here, and the policies render no Component there any more"
                help = "Remove this line first: kustomize would fail here once the component is gone."
                yield cluster, Problem("base/still-listed", reference.origin, message, help)


def _leaving(tree: Tree, overlays: str, forms: Mapping[str, str]) -> Iterator[str]:
    """Clusters, or former ones, with a component on disk that is not rendered now."""
    for entry in _entries(tree, overlays):
        if entry.folder and not entry.problem and forms.get(entry.name) != "component":
            try:
                if _COMPONENT in tree.read(f"{overlays}/{entry.name}/operator/kustomization.yaml"):
                    yield entry.name
            except TreeError:
                continue


def _naming(tree: Tree, folder: str, overlays: str) -> Iterator[str]:
    """Folders whose kustomization names the folder of the overlays."""
    name = overlays.rpartition("/")[2].encode()
    for entry in _entries(tree, folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.folder:
            if not entry.problem and path != overlays and not entry.name.startswith(".") and entry.name != _SKIPPED:
                yield from _naming(tree, path, overlays)
        elif entry.name in NAMES and name in _read(tree, path):
            yield folder


def _entries(tree: Tree, folder: str) -> Sequence[Entry]:
    try:
        return tree.list(folder)
    except TreeError:
        return ()


def _read(tree: Tree, path: str) -> bytes:
    try:
        return tree.read(path)
    except TreeError:
        return b""
