"""What a kustomization does to the objects that it has gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renderer.bases.merging import Unmergeable, merge
from renderer.bases.patching import Inapplicable, Operation, apply_leniently
from renderer.bases.targets import Target
from renderer.bases.values import BaseProblem, Identity, Refused, Subject
from renderer.model import Body, Origin, folded
from renderer.values import Value, replace


class Opaque(Value, frozen=True):
    """Something that may change any object, and that nothing but kustomize can tell."""

    problem: BaseProblem
    target: Target | None = None

    def apply(self, subject: Subject) -> Subject:
        if self.target is not None and not self.target.selects(subject):
            return subject
        raise Refused(self.problem.message, self.problem.help, self.problem.origin or subject.origin, self.problem.code)


class Renaming(Value, frozen=True):
    """`namespace`, `namePrefix` and `nameSuffix`."""

    origin: Origin
    namespace: str = ""
    prefix: str = ""
    suffix: str = ""

    def apply(self, subject: Subject) -> Subject:
        metadata = dict(subject.body["metadata"])
        metadata["name"] = f"{self.prefix}{metadata['name']}{self.suffix}"
        if self.namespace:
            metadata["namespace"] = self.namespace
        return _renamed(subject, {**subject.body, "metadata": metadata}, self.origin)


class Marking(Value, frozen=True):
    """`labels`, `commonLabels` and `commonAnnotations`: pairs that every object gets."""

    field: str
    pairs: Mapping[str, str]

    def apply(self, subject: Subject) -> Subject:
        old = subject.body["metadata"].get(self.field)
        marked = {**(old if isinstance(old, dict) else {}), **self.pairs}
        return replace(subject, body={**subject.body, "metadata": {**subject.body["metadata"], self.field: marked}})


class JsonPatch(Value, frozen=True):
    """A JSON 6902 patch with a target."""

    target: Target
    operations: Sequence[Operation]
    places: Sequence[Origin]
    legacy: bool = False

    def apply(self, subject: Subject) -> Subject:
        if not self.target.selects(subject):
            return subject
        # kustomize keeps notes in annotations, so these exist when such a patch runs; a patch under
        # patchesJson6902 makes no note of its own and finds annotations only after another step did.
        annotated = not self.legacy or bool(subject.earlier)
        try:
            body = apply_leniently(_with_annotations(subject.body) if annotated else subject.body, self.operations)
        except Inapplicable as error:
            place = self.places[min(error.index, len(self.places) - 1)]
            message = f"operation {error.index + 1} of this patch does not apply: {error}"
            raise Refused(message, "kustomize would fail here too: correct the patch.", place) from None
        if not _named(body):
            message = "this patch leaves the object without kind, metadata or name"
            raise Refused(message, "Correct the patch.", self.places[0])
        return _renamed(subject, tidy(body), self.places[0], note=not self.legacy)


class MergePatch(Value, frozen=True):
    """A merge patch; without a target it names its object itself."""

    patch: Body
    origin: Origin
    target: Target | None = None
    inline: bool = False
    legacy: bool = False
    renames: bool = False
    changes_kind: bool = False

    def apply(self, subject: Subject) -> Subject:
        if not self._selects(subject):
            return subject
        patch = self.patch if self.target is None and not self.legacy else _with_texts(self.patch)
        try:
            body = merge(subject.body, patch)
        except Unmergeable as error:
            message = f"this patch cannot be followed at {folded(error.path)}: {error}"
            below = Origin(self.origin.document, self.origin.path + error.path, key=True)
            help = "Write a JSON 6902 patch instead."
            raise Refused(message, help, self.origin if self.inline else below) from None
        return self._kept(subject, body)

    def _selects(self, subject: Subject) -> bool:
        if self.target is not None:
            return self.target.selects(subject)
        wanted = Identity.of(self.patch)
        named = [each for each in subject.identities if (each.kind, each.name) == (wanted.kind, wanted.name)]
        if not named:
            return False
        if self.patch.get("apiVersion") == subject.body.get("apiVersion") and wanted in named:
            return True
        message = (
            f"this patch names {wanted.kind} {wanted.name} of {self.patch.get('apiVersion')} in namespace "
            f"{wanted.namespace}, but the object is of {subject.body.get('apiVersion')} in namespace "
            f"{named[-1].namespace}: kustomize finds nothing to patch"
        )
        raise Refused(message, "Give the patch the apiVersion and the namespace of the object.", self.origin)

    def _kept(self, subject: Subject, body: Body) -> Subject:
        """kustomize restores what identifies an object, unless the patch has leave to change it."""
        old, metadata = subject.body["metadata"], body.get("metadata")
        metadata = dict(metadata) if isinstance(metadata, dict) else {}
        metadata["name"] = metadata.get("name") if self.renames else old["name"]
        metadata["namespace"] = old.get("namespace")
        body["metadata"] = {key: value for key, value in metadata.items() if key != "namespace" or value}
        body["apiVersion"] = subject.body["apiVersion"]
        body["kind"] = body.get("kind") if self.changes_kind else subject.body["kind"]
        return _renamed(subject, tidy(body), self.origin, note=self.renames or self.changes_kind)


def tidy(body: Body) -> Body:
    """The object as kustomize gives it out: annotations are texts, and there are none rather than an empty mapping."""
    metadata = body["metadata"]
    if "annotations" not in metadata:
        return body
    annotations = metadata["annotations"]
    if isinstance(annotations, dict) and annotations and all(isinstance(text, str) for text in annotations.values()):
        return body
    out = {key: value for key, value in metadata.items() if key != "annotations"}
    if isinstance(annotations, dict) and annotations:
        out["annotations"] = {key: _text(value) for key, value in annotations.items()}
    return {**body, "metadata": out}


def _renamed(subject: Subject, body: Body, origin: Origin, *, note: bool = True) -> Subject:
    before = subject.identity
    earlier = (*subject.earlier, before) if note and before not in subject.earlier else subject.earlier
    renamed = subject.renamed if Identity.of(body) == before else (*subject.renamed, origin)
    return replace(subject, body=body, earlier=earlier, renamed=renamed)


def _with_annotations(body: Body) -> Body:
    metadata = body["metadata"]
    if isinstance(metadata.get("annotations"), dict):
        return body
    return {**body, "metadata": {**metadata, "annotations": {}}}


def _with_texts(patch: Body) -> Body:
    """With a target, kustomize reads labels and annotations of a patch as texts first: null does not remove there."""
    metadata = dict(patch["metadata"])
    for field in ("labels", "annotations"):
        pairs = metadata.pop(field, None)
        if isinstance(pairs, dict) and pairs:
            metadata[field] = {key: _text(value) for key, value in pairs.items()}
    return {**patch, "metadata": metadata}


def _named(body: Any) -> bool:
    metadata = body.get("metadata")
    kind = body.get("kind")
    return isinstance(kind, str) and bool(kind) and isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return ""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
