"""What a base is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from renderer.model import Body, Document, Finding, Origin, Path, Position
from renderer.values import Value, replace


class Wanted(Value, frozen=True):
    """The one object to look for."""

    api_version: str
    kind: str
    name: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in namespace {self.namespace}"


class BaseProblem(Value, frozen=True):
    """Why a base does not answer; without an origin it belongs to the field that names the base."""

    code: str
    message: str
    help: str
    origin: Origin | None = None


class Refused(Exception):
    """A step that cannot be followed statically, or that kustomize itself would refuse."""

    def __init__(self, message: str, help: str, origin: Origin, code: str = "base/unreadable") -> None:
        super().__init__(message)
        self.problem = BaseProblem(code, message, help, origin)


class Identity(Value, frozen=True):
    """A name that an object has or had; kustomize finds it by each of them."""

    kind: str
    name: str
    namespace: str

    @classmethod
    def of(cls, body: Body) -> Identity:
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = str(metadata.get("namespace") or "default")
        return cls(str(body.get("kind", "")), str(metadata.get("name", "")), namespace)


class Subject(Value, frozen=True):
    """One object on its way through the directories that list it."""

    body: Body
    origin: Origin
    earlier: tuple[Identity, ...] = ()
    renamed: tuple[Origin, ...] = ()
    problems: tuple[BaseProblem, ...] = ()
    met: Subject | None = None
    later: tuple[Step, ...] = ()

    @property
    def identity(self) -> Identity:
        return Identity.of(self.body)

    @property
    def identities(self) -> tuple[Identity, ...]:
        return (*self.earlier, self.identity)

    def after(self, step: Step) -> Subject:
        """The object after a step; a step that refuses it leaves it as it is, with the problem."""
        later = (*self.later, step) if self.met is not None else ()
        try:
            return replace(step.apply(self), later=later)
        except Refused as refused:
            return replace(self, problems=(*self.problems, refused.problem), later=later)

    def meeting(self, origin: Origin) -> Subject:
        """The object with a note that our component, listed at `origin`, ran at this moment."""
        if self.met is None:
            return replace(self, met=self)
        message = "our component is listed twice on the way to the object, so it would run twice"
        problem = BaseProblem("base/conflict", message, "Remove one of the two.", origin)
        return replace(self, problems=(*self.problems, problem))


class Step(Protocol):
    """Something that a kustomization does to every object that it has gathered."""

    def apply(self, subject: Subject) -> Subject:
        """The object afterwards.  Raises `Refused`."""


class Base(Value, frozen=True):
    """The operator object as it stands at the moment our patch is applied."""

    subject: Subject
    later: tuple[Step, ...] = ()
    """What the base still does to the object after our component; nothing where our folder is the last."""

    @property
    def body(self) -> Body:
        """The object; shared between readers, so it must not be changed."""
        return self.subject.body

    @property
    def origin(self) -> Origin:
        """The document that declares it, at its root or at its place in a list."""
        return self.subject.origin

    @property
    def name(self) -> str:
        """Its name at that moment, which is what the target of our patch must give."""
        return self.subject.identity.name

    @property
    def namespaced(self) -> bool:
        """Whether it carries a namespace at that moment; if not, the target of our patch must not name one."""
        return bool(self.body["metadata"].get("namespace"))

    def settled(self, body: Body) -> Body | list[BaseProblem]:
        """The object that kustomize gives out when our component turned `body` into this, or what then fails."""
        subject = replace(self.subject, body=body)
        for step in self.later:
            subject = subject.after(step)
        return list(subject.problems) or subject.body


class Pinned(Value, frozen=True):
    """Marks of a text that could not be read any further than one place."""

    position: Position

    def at(self, path: Path, *, key: bool = False) -> Position:
        return self.position


def pinned(position: Position) -> Origin:
    """An origin at a place for which there is no document."""
    return Origin(Document(position.file, {}, Pinned(position)))


def unreadable(findings: Sequence[Finding]) -> list[BaseProblem]:
    """What the YAML reader found in a file of somebody else, as problems of the base."""
    return [BaseProblem("base/unreadable", each.message, each.help, pinned(each.position)) for each in findings]
