"""Problems to findings: one entry for each, with all the clusters that it concerns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from renderer.model import Document, Finding, Origin, Path, Problem, Severity
from renderer.shapes import Shape


class Gathered:
    """Problems to findings: one entry for each, with all clusters that it concerns."""

    def __init__(self, weight: Callable[[str], Severity]) -> None:
        self._weight = weight
        self._clusters: dict[Finding, set[str]] = defaultdict(set)
        self._notes: dict[tuple[str, str, Path], Origin] = {}

    def extend(self, problems: Iterable[Problem], clusters: Iterable[str]) -> None:
        for problem in problems:
            self._add(problem, problem.origin, clusters)

    def extend_members(self, problems: Iterable[Problem], shape: Shape) -> None:
        """A problem in a Cluster document or its facts stands once in each member's own file; a note in the first."""
        for problem in problems:
            owners = self._owners(problem, shape)
            if not owners:
                self._add(problem, problem.origin, shape.names)
            elif self._weight(problem.code) is Severity.NOTE:
                key = (problem.code, problem.message, problem.origin.path)
                self._add(problem, self._notes.setdefault(key, problem.origin), shape.names)
            else:
                for name, document in zip(shape.names, owners, strict=True):
                    self._add(problem, Origin(document, problem.origin.path, problem.origin.key), [name])

    def findings(self) -> list[Finding]:
        return [_with(finding, clusters) for finding, clusters in self._clusters.items()]

    def _owners(self, problem: Problem, shape: Shape) -> list[Document]:
        first = shape.facts[0]
        if problem.origin.document is shape.members[0].origin.document:
            return [member.origin.document for member in shape.members]
        if first and problem.origin.document is first.origin.document:
            return [facts.origin.document for facts in shape.facts if facts]
        return []

    def _add(self, problem: Problem, origin: Origin, clusters: Iterable[str]) -> None:
        finding = Finding(problem.code, self._weight(problem.code), origin.position, problem.message, problem.help)
        self._clusters[finding].update(clusters)


def _with(finding: Finding, clusters: set[str]) -> Finding:
    return Finding(
        finding.code, finding.severity, finding.position, finding.message, finding.help, tuple(sorted(clusters))
    )
