"""What the builds gave to findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from renderer import crds, proof
from renderer.building.running import Workplace
from renderer.building.targets import Target, Wanted
from renderer.kinds import operator_schema
from renderer.kustomize import Built
from renderer.model import Body, Finding, Overlay, Position
from renderer.proof import Key, Mismatch
from renderer.values import replace
from renderer.words import shortened

_BUG = "Report this as a bug: what is rendered builds in silence."
_LONGEST = 600


@dataclass(slots=True)
class Judge:
    """Hears one target after the other; what several of them share is read once."""

    work: Workplace
    built: Mapping[Wanted, Built]
    given: crds.Definitions
    _reader: proof.Reader = field(default_factory=proof.Reader)
    _clusters: dict[Finding, set[str]] = field(default_factory=lambda: defaultdict(set))
    _unvalidated: dict[tuple[str, str], Position] = field(default_factory=dict)

    def findings(self) -> list[Finding]:
        """What was found so far, in order of place."""
        found = [replace(one, clusters=tuple(sorted(names))) for one, names in self._clusters.items()]
        return sorted(found, key=lambda one: (one.position, one.code, one.message))

    def hear(self, target: Target) -> None:
        """Everything about one target."""
        failed = [mismatch for one in target.builds for mismatch in self._failed(one)]
        for mismatch in failed or self._chatter(target):
            self._add(target, mismatch)
        if failed:
            return
        try:
            objects = {one: self._reader.objects(self.built[one].out) for one in target.builds}
        except proof.Unreadable as error:
            message = f"what {self.work.kustomize.name} gave cannot be read: {error}"
            self._add(target, Mismatch("build/failed", message, "Try another release of kustomize."))
            return
        for mismatch in _mismatches(target, objects):
            self._add(target, mismatch)
        apart = [objects[one] for one in target.apart.values()]
        self._validate(target, reduce(or_, apart, objects[target.after or target.root] | objects[target.root]))

    def _failed(self, wanted: Wanted) -> Iterator[Mismatch]:
        built = self.built[wanted]
        if built.code is None:
            message = f"{self.work.kustomize.name} did not come to an end with {wanted}"
            yield Mismatch("build/failed", message, "Look for a remote resource that does not answer.")
        elif built.code != 0:
            message = f"{self.work.kustomize.name} cannot build {wanted}: {_short(built.err.splitlines())}"
            yield Mismatch("build/failed", message, "Correct what it names.")

    def _chatter(self, target: Target) -> Iterator[Mismatch]:
        """Messages on stderr: those that the base causes by itself, and ours."""
        alone = self._lines(target.before)
        for wanted in (target.root, target.after, *target.apart.values()):
            if ours := [line for line in self._lines(wanted) if line not in alone]:
                yield Mismatch("build/stderr", f"building {wanted} is not silent: {_short(ours)}", _BUG)
        if alone:
            message = f"building {target.operator.base} is not silent: {_short(alone)}"
            yield Mismatch("build/base-stderr", message, "Correct the base: what kustomize warns of goes away one day.")

    def _lines(self, wanted: Wanted | None) -> list[str]:
        return [line for line in self.built[wanted].err.splitlines() if line.strip()] if wanted else []

    def _validate(self, target: Target, objects: Mapping[Key, Body]) -> None:
        definitions = self._definitions(target)
        for one, body in objects.items() if definitions else ():
            group, kind = one[0].rpartition("/")[0], one[1]
            definition = definitions.get((group, kind))
            for fault in definition.faults(body) if definition else ():
                path = fault.path if proof.is_operator(one, target.operator) else ()
                self._add(target, Mismatch("build/schema", f"{proof.named(one)}: {fault.message}", fault.help, path))
            if definition is None and "." in group and not group.endswith(".k8s.io"):
                place = self._unvalidated.setdefault((group, kind), target.place())
                message = f"{kind} is not validated: no CustomResourceDefinition of {group} {kind} was given"
                self._put(target, place, Mismatch("build/no-crd", message, "Export it from the cluster as well."))

    def _definitions(self, target: Target) -> crds.Definitions:
        if target.site.crds is None:
            return self.given
        exported = crds.read(self.work.tree, target.site.crds)
        for problem in operator_schema.unusable(exported, target.site.origin.below("spec", "crds")):
            self._put(target, problem.origin.position, Mismatch(problem.code, problem.message, problem.help))
        return {**self.given, **exported.definitions}

    def _add(self, target: Target, mismatch: Mismatch) -> None:
        self._put(target, target.place(mismatch.path), mismatch)

    def _put(self, target: Target, place: Position, mismatch: Mismatch) -> None:
        severity = self.work.settings.weight(mismatch.code)
        finding = Finding(mismatch.code, severity, place, mismatch.message, mismatch.help)
        self._clusters[finding].update(target.names)


def _mismatches(target: Target, objects: Mapping[Wanted, Mapping[Key, Body]]) -> Iterator[Mismatch]:
    own, built = proof.own(target.overlay, target.operator.form), objects[target.root]
    for group, wanted in target.apart.items():
        yield from proof.whole(proof.own(Overlay(target.overlay.apart[group]), target.operator.form), objects[wanted])
    if target.operator.form != "overlay":
        yield from proof.whole(own, built)
    if target.before is None:
        return
    patched = objects[target.after] if target.after else {one: built[one] for one in built if one not in own}
    if target.after is None:
        yield from proof.whole(own, {one: built[one] for one in built if one in own})
    yield from proof.patched(objects[target.before], patched, target.operator, target.overlay)


def _short(lines: list[str]) -> str:
    return shortened(" / ".join(line.strip() for line in lines if line.strip()) or "it says nothing", _LONGEST)
