"""Which objects a patch selects, decided without running a stranger's regular expression blindly."""

from __future__ import annotations

import re

from renderer.bases.values import Refused, Subject
from renderer.model import Body, Origin
from renderer.values import Value
from renderer.words import shortened

_LONGEST = 253  # as long as a Kubernetes name can be
_QUANTIFIERS = 3  # the work of a backtracking matcher grows with the length to this power

# Patterns that mean the same to Go and to Python and cannot take long: no quantified groups, look-around,
# back-references, counted repeats or classes by name.
_LITERAL = re.compile(r"[A-Za-z0-9_-]*")
_CLASS = r"\[\^?[A-Za-z0-9_.-]+\]"
_ATOM = rf"(?:[A-Za-z0-9_./ -]|\\[./-]|{_CLASS})[*+?]?"
_GROUP = rf"\((?:\?:)?(?:{_ATOM}|\|)*\)(?![*+?{{])"
_HARMLESS = re.compile(rf"\^?(?:{_ATOM}|{_GROUP}|\|)*\$?")
_SELECTORS = ("labelSelector", "annotationSelector")
_FIELDS = ("kind", "group", "version", "name", "namespace")


class Target(Value, frozen=True):
    """The `target` of a patch: each field given is a regular expression for the whole value."""

    fields: Body
    origin: Origin

    def selects(self, subject: Subject) -> bool:
        """Whether kustomize would apply the patch to the object.  Raises `Refused`.

        Name and namespace may be the first or the present ones.  Source: kustomize, api/resmap/reswrangler.go, Select.
        """
        group, _, version = str(subject.body.get("apiVersion", "")).rpartition("/")
        first, now = subject.identities[0], subject.identity
        candidates = {
            "kind": (now.kind,),
            "group": (group,),
            "version": (version,),
            "name": (first.name, now.name),
            "namespace": (first.namespace, now.namespace),
        }
        # What can be told by comparing goes first: a pattern that is out of the question need not be harmless.
        given = sorted(
            ((name, self.fields[name]) for name in _FIELDS if self.fields.get(name)),
            key=lambda field: _LITERAL.fullmatch(str(field[1])) is None,
        )
        if not all(self._matches(name, pattern, candidates[name]) for name, pattern in given):
            return False
        for name in _SELECTORS:
            if self.fields.get(name):
                message = f"the {name} of this patch may select the object, which cannot be told without kustomize"
                raise Refused(message, "Select by kind and name instead.", self.origin.below(name))
        return True

    def _matches(self, name: str, pattern: object, values: tuple[str, ...]) -> bool:
        origin = self.origin.below(name)
        if not isinstance(pattern, str):
            raise Refused(f"{name} of a patch target must be a text", "Quote it.", origin)
        if _LITERAL.fullmatch(pattern):
            return pattern in values
        expression = _compiled(pattern, origin)
        if any(len(value) > _LONGEST for value in values):
            raise Refused(f"the {name} of the object is too long to be matched", "Select by kind only.", origin)
        return any(expression.fullmatch(value) for value in values)


def _compiled(pattern: str, origin: Origin) -> re.Pattern[str]:
    message = (
        f"the pattern {shortened(pattern)} is not tried: only plain ones are, without repeated groups, repeats in "
        f"braces, look-around or more than {_QUANTIFIERS} repeats"
    )
    refused = Refused(message, "Write the name itself, or a plain pattern: kubevirt-.* is one.", origin)
    quantifiers = re.sub(rf"{_CLASS}|\\.", "", pattern).count
    if len(pattern) > _LONGEST or not _HARMLESS.fullmatch(pattern):
        raise refused
    if quantifiers("*") + quantifiers("+") + quantifiers("?") - quantifiers("(?:") > _QUANTIFIERS:
        raise refused
    try:
        return re.compile(pattern)
    except re.error:
        raise refused from None
