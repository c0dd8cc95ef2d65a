"""What is to be built: for each cluster its folder, and its base with our component and without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from renderer import documents
from renderer.bases.patching import pointer
from renderer.kinds.base import OperatorObject, Site
from renderer.model import Overlay, Path, Position
from renderer.pipeline import Outcome


@dataclass(frozen=True, slots=True)
class Wanted:
    """One build: a folder from the root, in a copy whose component `without` is empty where one is named."""

    folder: str
    without: str = ""

    def __str__(self) -> str:
        return f"{self.folder} with {self.without} emptied" if self.without else self.folder


@dataclass(frozen=True, slots=True)
class Target:
    """Clusters whose folders hold the same bytes and refer to nothing outside: one build tells for all."""

    names: tuple[str, ...]
    folder: str
    overlay: Overlay
    site: Site

    @property
    def operator(self) -> OperatorObject:
        return self.site.operator

    @property
    def root(self) -> Wanted:
        """The cluster's own folder."""
        return Wanted(self.folder)

    @property
    def before(self) -> Wanted | None:
        """The base without us; none without a base."""
        if self.operator.base is None or self.operator.form not in ("component", "overlay"):
            return None
        return Wanted(self.operator.base, f"{self.folder}/operator" if self.operator.form == "component" else "")

    @property
    def after(self) -> Wanted | None:
        """The base with our component; form overlay gives it out through our own folder."""
        return Wanted(self.operator.base) if self.operator.base and self.operator.form == "component" else None

    @property
    def apart(self) -> dict[str, Wanted]:
        """The folders that stand apart from the cluster's own, by the name of their group."""
        overlays = self.folder.rpartition("/")[0]
        return {group: Wanted(f"{overlays}/{group}/{self.names[0]}") for group in self.overlay.apart}

    @property
    def builds(self) -> list[Wanted]:
        """All of them, the cluster's own folder first."""
        return [one for one in (self.root, self.before, self.after, *self.apart.values()) if one is not None]

    def place(self, path: Path = ()) -> Position:
        """The operator object's file, or the kustomization, and there the line that holds a field."""
        name = f"operator/{self.operator.kind.lower()}.yaml"
        if name not in self.overlay.files:
            return Position(f"{self.folder}/kustomization.yaml")
        file, text = f"{self.folder}/{name}", self.overlay.files[name]
        if self.operator.form == "partial":
            return documents.read_foreign(file, text.encode()).documents[0].marks.at(path)
        lines = text.splitlines()
        for length in range(len(path), 0, -1):
            line = f"  path: {pointer(path[:length])}"
            if line in lines:
                return Position(file, lines.index(line) + 1, 3, len(line) - 2)
        return Position(file)


def targets(outcome: Outcome, only: Iterable[str]) -> list[Target]:
    """The clusters named in `only`, or all of them; those that are built alike stand together."""
    found: dict[tuple[object, ...], Target] = {}
    names = set(only) or set(outcome.rendered)
    for name, one in outcome.rendered.items():
        if one.site is None or name not in names:
            continue
        alone = name if one.site.operator.base else ""
        apart = tuple((group, *files.items()) for group, files in one.overlay.apart.items())
        key = (alone, one.site.crds, one.site.operator, apart, *one.overlay.files.items())
        if key in found:
            found[key] = replace(found[key], names=(*found[key].names, name))
        else:
            found[key] = Target((name,), f"{outcome.folder}/{name}", one.overlay, one.site)
    return list(found.values())
