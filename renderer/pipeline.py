"""The whole job: the repository's files in, overlays and findings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from renderer import ignores, overlay, reading
from renderer.assemble import Spelling, kept_limits, spell
from renderer.bases import Base, BaseReader, Wanted, still_listed
from renderer.checks import (
    across,
    left_behind,
    operator_left_behind,
    tended,
    through_records,
    unrecorded,
    without_pressure,
)
from renderer.decode import Decoded, decode
from renderer.findings import SEVERITIES
from renderer.gathering import Gathered
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.fields import leaves_repository
from renderer.kinds.rate_limit import RateLimitPolicy
from renderer.kinds.site import based, moved, resolve
from renderer.model import (
    Component,
    Finding,
    Manifest,
    Overlay,
    Position,
    Problem,
    Setting,
    Severity,
    Tree,
)
from renderer.selection import select
from renderer.shapes import Shape, shapes
from renderer.values import Value, field


class Settings(Value, frozen=True):
    """Where things are in the repository, and how much findings weigh there."""

    policies: str = "policies"
    overlays: str = "overlays"
    severity: Mapping[str, Severity] = field(default_factory=dict)

    def weight(self, code: str) -> Severity:
        """The severity of findings with that code here: as configured, else the code's own."""
        return self.severity.get(code, SEVERITIES[code])


class Rendered(Value, frozen=True):
    """The overlay of one cluster, and what `build` must know of it; no site where a version is unknown."""

    overlay: Overlay
    site: Site | None
    policies: tuple[Decoded[Policy], ...] = ()
    """Those that apply to the cluster."""


class Outcome(Value, frozen=True):
    """The overlays by cluster and all findings, sorted.  The overlays are whole only without errors."""

    rendered: dict[str, Rendered]
    findings: list[Finding]
    folder: str

    @property
    def files(self) -> dict[str, str]:
        """Every rendered file by its path from the repository root."""
        return self.files_of(self.rendered)

    def files_of(self, clusters: Iterable[str]) -> dict[str, str]:
        """The files that are rendered for some clusters, those that are applied apart from the rest as well."""
        out: dict[str, str] = {}
        for cluster in clusters:
            one = self.rendered[cluster]
            out.update((f"{self.folder}/{cluster}/{path}", text) for path, text in one.overlay.files.items())
            for group, files in one.overlay.apart.items():
                out.update((f"{self.folder}/{group}/{cluster}/{path}", text) for path, text in files.items())
        return out

    @property
    def failed(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def empty(self) -> bool:
        """No cluster at all, and no other error than what follows from that."""
        errors = {finding.code for finding in self.findings if finding.severity is Severity.ERROR}
        return not self.rendered and errors <= {"base/still-listed", "soft-taint/left-behind"}


def run(tree: Tree, settings: Settings) -> Outcome:
    """The repository's files in, overlays and findings out.  Pure: no work tree, clock, program or cluster."""
    read = reading.read(tree, settings.policies)
    fleet = decode(read.documents, tree, whole=read.whole)
    selection = select(fleet)
    gathered = Gathered(settings.weight)
    gathered.extend(fleet.problems, ())
    for problem, clusters in selection.problems:
        gathered.extend([problem], clusters)
    rendered: dict[str, Rendered] = {}
    bases = BaseReader(tree, settings.overlays)
    for shape in shapes(fleet, selection):
        asked = _ask(shape, tree)
        gathered.extend_members(asked.problems, shape)
        for alike in shape.alike():
            one, problems = _render(asked, alike, bases, settings.overlays)
            gathered.extend_members(problems, alike)
            rendered.update((member.value.metadata.name, one) for member in alike.members)
    if not any(finding.severity is Severity.ERROR for finding in [*read.findings, *gathered.findings()]):
        # A Cluster that could not be read is not gone.
        leaving = (
            *still_listed(tree, settings.overlays, _forms(rendered)),
            *left_behind(tree, settings.overlays, _tended(rendered)),
            *operator_left_behind(
                tree, settings.overlays, {cluster: (one.overlay, one.site) for cluster, one in rendered.items()}
            ),
        )
        for cluster, problem in leaving:
            gathered.extend([problem], [cluster] if cluster in rendered else ())
    found = [*read.findings, *_first_of_each(read.findings, gathered.findings())]
    findings = ignores.apply(found, read.texts, settings.weight)
    return Outcome(dict(sorted(rendered.items())), sorted(findings, key=_place), settings.overlays)


def _forms(rendered: Mapping[str, Rendered]) -> dict[str, str]:
    return {cluster: one.site.operator.form for cluster, one in rendered.items() if one.site is not None}


def _tended(rendered: Mapping[str, Rendered]) -> set[str]:
    return {cluster for cluster, one in rendered.items() if tended(one.overlay, one.policies, one.site)}


def _first_of_each(found: Iterable[Finding], later: Iterable[Finding]) -> Iterator[Finding]:
    """Without what only follows from a scalar, key or tag that was already refused as it was read."""
    refused = {finding.position for finding in found}
    for finding in later:
        if not finding.code.startswith("policy/") or finding.position not in refused:
            yield finding


class _Asked(Value, frozen=True):
    """What the winning policies ask for on alike clusters, and what is wrong; no site where a version is unknown.

    `policies` are those that ask for settings, as `Kind/name`.
    """

    site: Site | None
    problems: list[Problem]
    settings: list[Setting] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    policies: set[str] = field(default_factory=set)


def _ask(shape: Shape, tree: Tree) -> _Asked:
    first = shape.members[0]
    site, problems = resolve(first.value, first.origin, shape.facts[0], tree)
    asked = _Asked(site, problems)
    if site is None:
        return asked
    for policy in shape.policies:
        kind = type(policy.value).__name__
        seen = site if policy.value.reads_base else based(site, None)
        for request in policy.value.apply(policy.origin, seen):
            match request:
                case Setting():
                    asked.settings.append(request)
                    asked.policies.add(f"{kind}/{policy.value.metadata.name}")
                case Manifest():
                    asked.manifests.append(request)
                case Problem():
                    problems.append(request)
    for check in (across, through_records, unrecorded, without_pressure):
        problems.extend(check(shape.policies, site))
    return asked


def _render(asked: _Asked, shape: Shape, bases: BaseReader, folder: str) -> tuple[Rendered, list[Problem]]:
    """The overlay of clusters that are alike in everything, and what their base has to do with it."""
    first = shape.members[0]
    folder = f"{folder}/{first.value.metadata.name}"
    if asked.site is None:
        return Rendered(Overlay({}), None), []
    site, problems = moved(asked.site, first.value, first.origin, shape.facts[0]), list[Problem]()
    base = _base(site, bases, folder, problems)
    fields = Spelling()
    if site.operator.form == "none":
        firsts = {setting.origin.document: setting for setting in reversed(asked.settings)}
        problems.extend(_never_rendered(setting) for setting in firsts.values())
    elif base is not None or site.operator.base is None:
        fields = spell(asked.settings, site, base)
    problems.extend(fields.problems)
    if base is not None:
        problems.extend(_without_effect(shape.policies, asked, site, base))
    if site.operator.base is not None and base is None:
        return Rendered(Overlay({}), site), problems
    built = overlay.build(folder, site, base, fields.fields, asked.manifests, asked.policies)
    problems.extend(built.problems)
    return Rendered(built.overlay, site, tuple(shape.policies)), problems


def _base(site: Site, bases: BaseReader, folder: str, problems: list[Problem]) -> Base | None:
    operator = site.operator
    if operator.base is None or operator.form not in ("component", "overlay"):
        return None
    if leaves_repository(operator.base):  # the Cluster document's own check says so
        return None
    wanted = Wanted(operator.api_version, operator.kind, operator.name, operator.namespace)
    own = f"{folder}/operator"
    found = bases.read(operator.base, wanted, own if operator.form == "component" else None, own=own)
    if isinstance(found, Base):
        return found
    place = site.origin.below("spec", "operatorResource", "base")
    problems.extend(Problem(one.code, one.origin or place, one.message, one.help) for one in found)
    return None


def _without_effect(policies: Sequence[Decoded[Policy]], asked: _Asked, site: Site, base: Base) -> Iterator[Problem]:
    """A policy that sets no limits, so that those of the components apply, over a base that has limits of its own."""
    own = kept_limits(site, base)
    if not own or any(isinstance(setting.field, Component) for setting in asked.settings):
        return
    for policy in policies:
        if isinstance(policy.value, RateLimitPolicy):
            place = policy.origin.below("spec", "adaptive" if policy.value.spec.adaptive else "profile")
            message = f"the policy sets no limits here, and those of the base stay: {own}"
            yield Problem("rate-limit/base-keeps", place, message, "Remove them from the base to have the defaults.")


def _never_rendered(setting: Setting) -> Problem:
    message = "the policy needs the operator object, and operatorResource.form none says that it is never rendered"
    return Problem(
        "base/required", setting.origin, message, "Choose another form for these clusters, or leave them out."
    )


def _place(finding: Finding) -> tuple[Position, str, str]:
    return finding.position, finding.code, finding.message
