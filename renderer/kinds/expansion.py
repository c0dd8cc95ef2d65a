"""`ExpansionPolicy`: whether KubeVirt keeps references to instance types, or writes their values out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from renderer.kinds import manifests
from renderer.kinds.base import (
    ApiVersion,
    Metadata,
    OperatorRelease,
    Policy,
    PolicySpec,
    Request,
    Site,
    check_path,
    unneeded,
)
from renderer.kinds.fields import RepoPath
from renderer.model import Body, OperatorField, Origin, Problem, Setting, Tree, Via, itemized
from renderer.words import counted

ReferencePolicy = Literal["reference", "expand", "expandAll"]


class ExpansionSpec(PolicySpec, frozen=True, kw_only=True):
    """What becomes of references to instance types and preferences."""

    reference_policy: Annotated[
        ReferencePolicy,
        Meta(
            description="reference: keep them; expand: write out those of new virtual machines; expandAll: of all, "
            "which cannot be undone."
        ),
    ]
    via: Annotated[
        Literal["field", "jsonpatch"],
        Meta(
            description="jsonpatch: through HyperConverged's JSON patch annotation, the only way on its release 1.14."
        ),
    ] = "field"
    manifests: Annotated[
        list[RepoPath],
        Meta(
            description="Globs of manifests, from the repository root, that are searched for virtual machines.",
            examples=[["vms/**/*.yaml"]],
        ),
    ] = []
    acknowledge: Annotated[
        list[Literal["one-way", "rewrites-declared-vms", "replaces-annotation"]],
        Meta(description="Consequences that the team has understood."),
    ] = []


class ExpansionPolicy(Policy, frozen=True, kw_only=True):
    """The instance-type reference policy of a cluster."""

    api_version: ApiVersion
    kind: Literal["ExpansionPolicy"]
    metadata: Metadata
    spec: ExpansionSpec

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        yield from _unneeded(self.spec, origin.below("spec", "acknowledge"))
        if self.spec.reference_policy == "reference":
            return
        at = origin.below("spec", "referencePolicy")
        if self.spec.reference_policy == "expandAll" and "one-way" not in self.spec.acknowledge:
            yield Problem(
                "expansion/one-way",
                at,
                "expandAll rewrites every virtual machine of the cluster and cannot be undone: the recorded revisions "
                "are deleted",
                "Keep reference, or write acknowledge: [one-way] once the team agrees.",
            )
        outside = [
            problem
            for index, pattern in enumerate(self.spec.manifests)
            for problem in check_path(pattern, origin.below("spec", "manifests", index))
        ]
        yield from outside
        found = manifests.find(tree, [] if outside else self.spec.manifests)
        yield from _rewritten(self.spec, found, at)
        yield from _not_inspected(self.spec, found, origin.below("spec"))

    def apply(self, origin: Origin, site: Site) -> Iterator[Request]:
        at = origin.below("spec", "referencePolicy")
        problems = [problem for release in site.releases for problem in _check_release(self.spec, release, at)]
        yield from problems
        if not problems:
            yield Setting(
                OperatorField.REFERENCE_POLICY,
                self.spec.reference_policy,
                at,
                subject="expansion",
                via=Via(self.spec.via),
                replaces_annotation="replaces-annotation" in self.spec.acknowledge,
            )


def _unneeded(spec: ExpansionSpec, at: Origin) -> Iterator[Problem]:
    """`replaces-annotation` is left out: whether it is needed depends on the cluster."""
    asked = {"one-way": ["expandAll"], "rewrites-declared-vms": ["expand", "expandAll"]}
    for index, word in enumerate(spec.acknowledge):
        if spec.reference_policy not in asked.get(word, [spec.reference_policy]):
            yield unneeded(word, f"referencePolicy: {spec.reference_policy}", at.below(index))


def _check_release(spec: ExpansionSpec, release: OperatorRelease, at: Origin) -> Iterator[Problem]:
    operator = release.hyperconverged
    if not release.kubevirt.reference_policy:
        message = f"{release.kubevirt_name} has no reference policy; it came with KubeVirt 1.4"
        yield Problem("expansion/unsupported", at, message, "Leave these clusters out until they are upgraded.")
    elif operator is not None and spec.via == "field" and not operator.reference_policy:
        message = f"{release.name} has no field for the reference policy; it came with HyperConverged 1.15"
        yield Problem(
            "expansion/needs-jsonpatch",
            at,
            message,
            "Write via: jsonpatch to reach it through the JSON patch annotation.",
        )
    elif operator is None and spec.via == "jsonpatch":
        message = "via: jsonpatch goes through HyperConverged, and these clusters have none"
        yield Problem(
            "expansion/unsupported", Origin(at.document, ("spec", "via")), message, "Write via: field, or leave it out."
        )


def _rewritten(spec: ExpansionSpec, found: manifests.Manifests, at: Origin) -> Iterator[Problem]:
    machines = [
        f"{origin.position.place} {_name(body)} ({uses})" for body, origin in found.objects if (uses := _uses(body))
    ]
    if machines and "rewrites-declared-vms" not in spec.acknowledge:
        count = counted(len(machines), "declared VirtualMachine")
        consequence = "Git and the cluster would differ for ever, and a new apply is refused"
        message = f"{spec.reference_policy} rewrites {count}: {consequence}"
        help = "Keep reference for machines that Git declares, or write acknowledge: [rewrites-declared-vms]. They are:"
        yield Problem("expansion/rewrites-vms", at, message, itemized(help, machines))


def _uses(body: Any) -> str:
    """Which of the two references a VirtualMachine has; nothing for anything else."""
    if not isinstance(body, dict):
        return ""
    spec = body.get("spec")
    is_machine = body.get("kind") == "VirtualMachine" and str(body.get("apiVersion", "")).startswith("kubevirt.io/")
    if not is_machine or not isinstance(spec, dict):
        return ""
    return " and ".join(name for name in ("instancetype", "preference") if spec.get(name))


def _name(body: Body) -> str:
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "without a name")
    return f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name


def _not_inspected(spec: ExpansionSpec, found: manifests.Manifests, at: Origin) -> Iterator[Problem]:
    if not spec.manifests:
        yield Problem(
            "expansion/not-inspected",
            at.below("referencePolicy"),
            f"{spec.reference_policy} rewrites virtual machines, and no manifests were searched for them",
            "Add manifests: with globs of the places where virtual machines are declared.",
        )
        return
    opaque = [*found.opaque, *_makers(found)]
    yield from manifests.not_inspected("expansion/not-inspected", opaque, "virtual machines", at.below("manifests"))


def _makers(found: manifests.Manifests) -> Iterator[str]:
    """Objects from which others make virtual machines that use a reference."""
    for body, origin in found.objects:
        uses = sorted(set(map(_uses, _made_by(body))) - {""})
        if uses:
            yield f"{origin.position.place}: {body['kind']} {_name(body)} makes virtual machines ({', '.join(uses)})"


def _made_by(body: Body) -> list[Any]:
    version, spec = str(body.get("apiVersion", "")), body.get("spec")
    if body.get("kind") == "VirtualMachinePool" and version.startswith("pool.kubevirt.io/") and isinstance(spec, dict):
        template = spec.get("virtualMachineTemplate")
        named = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
        return [{**template, **named}] if isinstance(template, dict) else []
    objects = body.get("objects")
    is_template = body.get("kind") == "Template" and version in ("template.openshift.io/v1", "v1")
    return objects if is_template and isinstance(objects, list) else []
