"""The whole of it: a base directory to the operator object that it declares."""

from __future__ import annotations

from renderer.bases import paths
from renderer.bases.files import Files
from renderer.bases.kustomization import Kustomization, Kustomizations
from renderer.bases.matching import choose
from renderer.bases.values import Base, BaseProblem, Subject, Wanted
from renderer.bases.walking import Stopped, Walk
from renderer.model import Origin, Tree, itemized, printable


class BaseReader:
    """Reads bases of one tree.  What several clusters share is parsed once per reader."""

    def __init__(self, tree: Tree, rendered: str | None = None) -> None:
        """`rendered` is the folder of the overlays: bases may list their own component there, and nothing else."""
        self._files = Files(tree, rendered)
        self._rendered = rendered
        self._kustomizations = Kustomizations(self._files)

    def read(
        self, base: str, wanted: Wanted, component: str | None, *, own: str | None = None
    ) -> Base | list[BaseProblem]:
        """The wanted object in the directory `base`, or every reason why it is not found there.

        `component` is our own component's folder where the base is to list it (form component), none where
        our folder, `own`, lists the base (form overlay).  All are paths from the root of the tree.
        """
        folder = paths.resolve("", base)
        if folder is None:
            help = "Give a folder by its path from the root of the repository, with forward slashes."
            return [BaseProblem("base/outside", f"{base} is not a folder of this repository", help)]
        walk = Walk(self._files, self._kustomizations, component and paths.resolve("", component), self._rendered, own)
        try:
            subjects = walk.enter(folder, None)
        except Stopped as stopped:
            return [stopped.problem]
        if component is None:
            self._refuse_component(folder, walk)
        if walk.problems:
            return list(dict.fromkeys(walk.problems))
        found = choose(subjects, wanted, walk.creating)
        if isinstance(found, list):
            return found
        return self._answer(found, walk, folder)

    def _refuse_component(self, folder: str, walk: Walk) -> None:
        """Our folder lists the base as a resource, which a component cannot be."""
        found = self._kustomizations.load(folder, None)
        if isinstance(found, Kustomization) and found.component:
            help = "Point to the directory that lists it, or choose form: component."
            walk.problems.append(BaseProblem("base/unreadable", f"{folder} is a Component", help, found.origin))

    def _answer(self, subject: Subject, walk: Walk, folder: str) -> Base | list[BaseProblem]:
        problems = (*walk.pervasive, *subject.problems)
        if problems:
            return list(dict.fromkeys(problems))
        if walk.component is None:
            return Base(subject)
        if subject.met is None:
            return [self._not_listed(folder, walk.component)]
        return Base(subject.met, subject.later)

    def _not_listed(self, folder: str, component: str) -> BaseProblem:
        found = self._kustomizations.load(folder, None)
        origin = Origin(found.origin.document, ("components",), key=True) if isinstance(found, Kustomization) else None
        file = origin.document.file if origin else folder
        message = f"nothing on the way to the object lists our component {component}"
        help = itemized(f"Add to components: in {printable(file)}:", [f"  - {paths.relative(component, folder)}"])
        return BaseProblem("base/not-listed", message, help, origin)
