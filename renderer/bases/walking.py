"""Directory by directory, as kustomize gathers them: resources, then components, then the directory's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from renderer.bases import paths
from renderer.bases.contents import items
from renderer.bases.files import Files, explained
from renderer.bases.kustomization import OPERATORS, Kustomization, Kustomizations, Reference
from renderer.bases.steps import Opaque, tidy
from renderer.bases.values import BaseProblem, Subject
from renderer.model import Body, Origin, TreeError

MAX_FILES = 2_000
MAX_DEPTH = 50
MAX_SUBJECTS = 100


class Stopped(Exception):
    """The base is larger than anything real."""

    def __init__(self, message: str, origin: Origin | None) -> None:
        super().__init__(message)
        self.problem = BaseProblem("base/unreadable", message, "Point to a smaller directory.", origin)


@dataclass(slots=True)
class Walk:
    """One way through a base, and what is met there besides the objects."""

    files: Files
    kustomizations: Kustomizations
    component: str | None
    rendered: str | None
    own: str | None = None
    """Our own folder, where it lists the base: the base must not list it in turn."""
    problems: list[BaseProblem] = field(default_factory=list)
    creating: list[BaseProblem] = field(default_factory=list)
    pervasive: list[BaseProblem] = field(default_factory=list)
    left: int = MAX_FILES

    def enter(
        self, folder: str, origin: Origin | None, above: tuple[str, ...] = (), gathered: Sequence[Subject] | None = None
    ) -> list[Subject]:
        """The objects that a folder gives out; `gathered` are those that a component works on.  Raises `Stopped`."""
        if any(paths.within(visited, folder) for visited in above):
            message = f"{folder or '.'} holds the folder that refers to it: a cycle"
            return self._fail(message, "Remove the reference.", origin)
        if len(above) == MAX_DEPTH:
            raise Stopped(f"folders refer to folders more than {MAX_DEPTH} levels deep", origin)
        self._count(origin)
        found = self.kustomizations.load(folder, origin)
        if isinstance(found, list):
            self.problems += found
            return []
        as_component = gathered is not None
        if above and found.component != as_component:
            kind, key = ("Component", "components") if found.component else ("Kustomization", "resources")
            return self._fail(f"{folder} is a {kind}", f"List it under {key}: instead.", origin)
        return self._run(found, folder, (*above, folder), list(gathered or ()))

    def _run(
        self, kustomization: Kustomization, folder: str, above: tuple[str, ...], subjects: list[Subject]
    ) -> list[Subject]:
        self.problems += kustomization.problems
        self.creating += kustomization.creating
        self.pervasive += kustomization.pervasive
        for reference in kustomization.resources:
            subjects = subjects + self._resource(reference, folder, above)
        for reference in kustomization.components:
            subjects = self._component(reference, folder, above, subjects)
        if len(subjects) > MAX_SUBJECTS:
            raise Stopped(f"more than {MAX_SUBJECTS} operator objects", kustomization.origin)
        for step in kustomization.steps:
            subjects = [subject.after(step) for subject in subjects]
        return subjects

    def _resource(self, reference: Reference, folder: str, above: tuple[str, ...]) -> list[Subject]:
        if paths.remote(reference.text):
            self.creating.append(_fetched(reference))
            return []
        path = self._resolved(reference, folder)
        if path is None:
            return []
        if path == self.component:
            message = f"the component {reference.text} is listed under resources"
            return self._fail(message, "List it under components: instead.", reference.origin, "base/not-listed")
        if self._is_rendered(path):
            return self._borrowed(reference, path)
        try:
            self.files.read(path)
        except TreeError as error:
            return self._folder(path, reference, above, error)
        if not paths.within(path, folder):
            message = f"kustomize refuses files outside the folder that names them: {reference.text}"
            return self._fail(message, "Give that file a kustomization, and list its folder.", reference.origin)
        return self._file(path, reference)

    def _folder(self, path: str, reference: Reference, above: tuple[str, ...], error: TreeError) -> list[Subject]:
        try:
            if self.files.names(path):
                return self.enter(path, reference.origin, above)
        except TreeError:  # no folder either: what reading it as a file said counts
            pass
        self.problems.append(explained(error, reference.text, reference.origin))
        return []

    def _file(self, path: str, reference: Reference) -> list[Subject]:
        self._count(reference.origin)
        parsed = self.files.documents(path)
        (self.creating if parsed.skipped else self.problems).extend(parsed.problems)
        found = (each for document in parsed.documents for each in items(document.data, Origin(document)))
        subjects = []
        for body, origin in found:
            if not isinstance(body.get("kind"), str | None):
                message, help = "kind is not a text: is this a template?", "Commit the manifest that it gives."
                self._fail(message, help, origin.below("kind"))
            elif _operator(body):
                subjects.append(Subject(tidy(body), origin))
        return subjects

    def _component(
        self, reference: Reference, folder: str, above: tuple[str, ...], subjects: list[Subject]
    ) -> list[Subject]:
        if paths.remote(reference.text):
            self.creating.append(_fetched(reference))
            return [subject.after(Opaque(_fetched(reference))) for subject in subjects]
        path = self._resolved(reference, folder)
        if path is None:
            return subjects
        if path == self.component:
            return [subject.meeting(reference.origin) for subject in subjects]
        if self._is_rendered(path):
            self._borrowed(reference, path)
            return subjects
        return self.enter(path, reference.origin, above, subjects)

    def _is_rendered(self, path: str) -> bool:
        return self.rendered is not None and paths.within(path, self.rendered)

    def _borrowed(self, reference: Reference, path: str) -> list[Subject]:
        """What is rendered must not decide what is rendered: the result would depend on what was committed before."""
        if path == self.own:
            message = f"{reference.text} is our own folder, which lists this base itself with form overlay"
            help = "Remove the line before leaving form component, or go back to it."
            return self._fail(message, help, reference.origin, "base/conflict")
        message = f"{reference.text} is rendered for another cluster, and this base would depend on it"
        help = "Keep what both clusters share in a directory of its own, and list each component in its cluster's own."
        return self._fail(message, help, reference.origin, "base/conflict")

    def _resolved(self, reference: Reference, folder: str) -> str | None:
        path = paths.resolve(folder, reference.text)
        if path is None:
            message = f"{reference.text} lies outside the repository"
            self._fail(message, "Refer to it by a relative path within it.", reference.origin, "base/outside")
        return path

    def _count(self, origin: Origin | None) -> None:
        self.left -= 1
        if self.left < 0:
            raise Stopped(f"the base reads more than {MAX_FILES} files", origin)

    def _fail(self, message: str, help: str, origin: Origin | None, code: str = "base/unreadable") -> list[Subject]:
        self.problems.append(BaseProblem(code, message, help, origin))
        return []


def _operator(body: Body) -> bool:
    metadata = body.get("metadata")
    return body.get("kind") in OPERATORS and isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _fetched(reference: Reference) -> BaseProblem:
    message = f"{reference.text} is remote, and bases are read without a network"
    help = "Commit a copy of what declares the object, and list that."
    return BaseProblem("base/unreadable", message, help, reference.origin)
