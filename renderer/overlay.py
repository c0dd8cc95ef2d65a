"""The fields of the operator object, and what single policies bring, to the files of one cluster's folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from renderer import emit, header
from renderer.assemble import Field, protect
from renderer.bases import Base, FieldError, apply, operations
from renderer.bases.patching import APPEND
from renderer.bases.paths import relative
from renderer.kinds.base import OperatorObject, Site
from renderer.model import Body, Manifest, Overlay, Path, Problem, folded
from renderer.values import Value, field

_KUSTOMIZATION = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
_COMPONENT = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}


class Built(Value, frozen=True):
    """The overlay of one cluster, and what stands in its way."""

    overlay: Overlay
    problems: list[Problem] = field(default_factory=list)


def build(
    folder: str,
    site: Site,
    base: Base | None,
    fields: Sequence[Field],
    manifests: Sequence[Manifest],
    policies: Iterable[str],
) -> Built:
    """The files below `folder` (`overlays/<cluster>`), named relative to it.

    `policies` are those that asked for `fields`, as `Kind/name`.
    """
    problems: list[Problem] = []
    bodies: dict[str, tuple[Body | list[Any], set[str]]] = {}
    intent: tuple[tuple[Path, Any], ...] = ()
    if site.operator.form != "none":
        protection = protect(site, base)
        problems.extend(protection.problems)
        whole = [*fields, *protection.fields]
        intent = tuple((one.path, one.value) for one in whole)
        bodies |= _operator(folder, site, base, whole, set(policies), problems)
    groups: dict[str, dict[str, tuple[Body | list[Any], set[str]]]] = defaultdict(dict)
    for manifest in manifests:
        where, path = (
            (groups[manifest.folder], "") if manifest.folder.startswith("_") else (bodies, f"{manifest.folder}/")
        )
        _add(where, f"{path}{manifest.name}.yaml", manifest)
    bodies |= _kustomizations(bodies)
    bodies["kustomization.yaml"] = (_root(site, bodies), {name for _, names in bodies.values() for name in names})
    apart = {group: _sealed(found | _kustomizations(found)) for group, found in groups.items()}
    return Built(Overlay(files=_sealed(bodies), intent=intent, apart=apart), problems)


def _add(where: dict[str, tuple[Body | list[Any], set[str]]], path: str, manifest: Manifest) -> None:
    """Equal manifests of two policies are one, named by both: neither alone decides that the object is there.

    Policies that bring different objects under one name are a mistake of their kinds.
    """
    body, names = where.setdefault(path, (manifest.body, set()))
    if body != manifest.body:
        raise ValueError(f"{manifest.policy} and {', '.join(sorted(names))} bring different manifests called {path}")
    names.add(manifest.policy)


def _sealed(bodies: Mapping[str, tuple[Body | list[Any], set[str]]]) -> dict[str, str]:
    return {path: header.sealed(emit.remembered(body), names) for path, (body, names) in sorted(bodies.items())}


def _root(site: Site, bodies: Mapping[str, object]) -> Body:
    """Lists the folders that can be applied by themselves; a component is built where its base lists it."""
    folders = sorted({path.partition("/")[0] for path in bodies})
    return {
        **_KUSTOMIZATION,
        "resources": [name for name in folders if name != "operator" or site.operator.form != "component"],
    }


def _kustomizations(bodies: Mapping[str, tuple[Any, set[str]]]) -> dict[str, tuple[Body, set[str]]]:
    """A kustomization for each folder that has none yet, listing its files in order of name."""
    listed: dict[str, list[str]] = defaultdict(list)
    names: dict[str, set[str]] = defaultdict(set)
    for path, (_, policies) in sorted(bodies.items()):
        folder, _, name = path.rpartition("/")
        listed[folder].append(name)
        names[folder] |= policies
    return {
        f"{folder}/kustomization.yaml".lstrip("/"): ({**_KUSTOMIZATION, "resources": files}, names[folder])
        for folder, files in listed.items()
        if "kustomization.yaml" not in files
    }


def _operator(
    folder: str, site: Site, base: Base | None, fields: Sequence[Field], policies: set[str], problems: list[Problem]
) -> dict[str, tuple[Body | list[Any], set[str]]]:
    operator = site.operator
    file = f"{operator.kind.lower()}.yaml"
    if base is None:
        return {f"operator/{file}": (_partial(operator, fields), policies)}
    patch = _patch(base, fields, problems)
    kustomization: Body = dict(_COMPONENT if operator.form == "component" else _KUSTOMIZATION)
    if operator.form == "overlay":
        kustomization["resources"] = [relative(operator.base or ".", f"{folder}/operator")]
    if patch:
        kustomization["patches"] = [{"path": file, "target": _target(operator, base)}]
    elif operator.form == "component":
        kustomization["resources"] = []  # kustomize refuses a Component that says nothing at all
    out: dict[str, tuple[Body | list[Any], set[str]]] = {"operator/kustomization.yaml": (kustomization, policies)}
    return out | ({f"operator/{file}": (patch, policies)} if patch else {})


def _partial(operator: OperatorObject, fields: Sequence[Field]) -> Body:
    """Only our fields, for server-side apply; bare where there are none, which takes back those of removed policies."""
    body: Body = {
        "apiVersion": operator.api_version,
        "kind": operator.kind,
        "metadata": {"name": operator.name, "namespace": operator.namespace},
    }
    if operator.kind == "KubeVirt":
        body["spec"] = {}  # required at the root of every release's schema
    for one in fields:
        *parents, last = map(str, one.path)
        node = body
        for step in parents:
            node = node.setdefault(step, {})
        node[last] = one.value
    return body


def _target(operator: OperatorObject, base: Base) -> Body:
    """kustomize takes name and namespace as regular expressions."""
    group, _, version = operator.api_version.partition("/")
    target = {"group": group, "version": version, "kind": operator.kind, "name": _literally(base.name)}
    return target | ({"namespace": _literally(operator.namespace)} if base.namespaced else {})


def _literally(name: str) -> str:
    return f"^{name.replace('.', '[.]')}$"


def _patch(base: Base, fields: Sequence[Field], problems: list[Problem]) -> list[Any]:
    pairs = [(one.path, one.value) for one in fields]
    try:
        patch = operations(base.body, pairs)
    except FieldError as error:
        place = base.origin.below(*error.path)
        problems.append(Problem("base/conflict", place, str(error), "Correct the base: kustomize would fail here."))
        return []
    if base.later:
        problems.extend(_undone(base, fields, base.settled(apply(base.body, patch))))
    return patch


def _undone(base: Base, fields: Sequence[Field], settled: Any) -> Iterator[Problem]:
    """Fields that the base's own patches, which run after our component, take away again."""
    if isinstance(settled, list):
        for problem in settled:
            yield Problem(problem.code, problem.origin or base.origin, problem.message, problem.help)
        return
    for one in fields:
        if not _holds(settled, one):
            message = f"the base's own patches run after our component and undo {folded(one.path)}"
            help = "Let them leave the field alone (add one annotation, not the whole map), or use form: overlay."
            yield Problem("base/conflict", one.origin, message, help)


def _holds(body: Any, wanted: Field) -> bool:
    """Whether the field has its value; an appended item may have been followed by others."""
    *parents, last = wanted.path
    for step in parents:
        body = body.get(step) if isinstance(body, dict) else None
    if last == APPEND:
        return isinstance(body, list) and wanted.value in body
    return isinstance(body, dict) and body.get(last) == wanted.value
