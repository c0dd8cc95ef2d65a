"""A `Cluster` document to the site that policies see: releases looked up, defaults filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from renderer.kinds.base import Descheduler, Facts, MonitoringSite, OperatorObject, OperatorRelease, Site
from renderer.kinds.cluster import Cluster, ClusterSpec, NextVersions
from renderer.kinds.fields import leaves_repository, normal, seconds
from renderer.model import Origin, Problem, Tree
from renderer.releases import descheduler, descheduler_operator, hyperconverged, kubevirt
from renderer.releases.versions import Known, Version, look_up, parse
from renderer.values import replace

_POOLS = {"compact": ("master",), "single-node": ("master",)}


@dataclass(slots=True)
class _Lookup:
    """Versions to releases, with the problems gathered on the way."""

    allow_newer: bool
    problems: list[Problem] = field(default_factory=list)

    def find(self, product: str, table: Mapping[str, Any], text: str, at: Origin) -> Known[Any] | None:
        """The release of a product, in its upstream numbering."""
        version = parse(text)
        given = version
        if version is not None and product == "HyperConverged":
            version = hyperconverged.upstream(version)
        known = look_up(table, version, allow_newer=self.allow_newer) if version else None
        if known is not None and given is not None and version is not None and given.major != version.major:
            self._add("release/assumed", at, *_assumed(given, version))
        if known is None:
            self._add("release/unknown", at, f"{product} {text} is not known", _known(product, table, version))
        elif known.newer:
            self._newer(f"{product} {text}", known.version.name, at)
        return known

    def find_operator(self, text: str, at: Origin, *, exported: bool) -> None:
        """The descheduler operator, whose numbers run in steps of their own; `exported` definitions settle more."""
        version = parse(text)
        if version is None:
            return
        if descheduler_operator.schema(version, allow_newer=self.allow_newer) is None:
            known = ", ".join(descheduler_operator.KNOWN)
            help = f"Give the version of its ClusterServiceVersion, not OpenShift's: known are {known}."
            if descheduler_operator.newer(version):
                help += f" With versions.allowNewer a newer one is rendered as {descheduler_operator.KNOWN[-1]}."
            self._add("release/unknown", at, f"descheduler operator {version} is not known", help)
        elif descheduler_operator.newer(version):
            self._newer(f"descheduler operator {version}", descheduler_operator.KNOWN[-1], at)
        elif not exported and version.patch is None and (later := descheduler_operator.LATER_PATCH.get(version.name)):
            message = (
                f"descheduler operator {version} is taken as {version}.0: "
                f"{version}.{later} and newer have another schema"
            )
            help = f"Write the patch as well: oc get csv -n {descheduler_operator.NAMESPACE}"
            self._add("release/assumed", at, message, help)

    def _newer(self, what: str, known: str, at: Origin) -> None:
        message = f"{what} is newer than the tables; it is rendered as {known}"
        self._add("release/newer", at, message, "Update this tool once a release of it knows that version.")

    def _add(self, code: str, at: Origin, message: str, help: str) -> None:
        self.problems.append(Problem(code, at, message, help))


def _assumed(version: Version, upstream: Version) -> tuple[str, str]:
    message = (
        f"OpenShift Virtualization {version.name} is taken as HyperConverged {upstream.name}: "
        "the numbers are assumed to run in step"
    )
    return message, f'Write hyperconverged: "{upstream.name}" to state it.'


def _known(product: str, table: Mapping[str, Any], version: Version | None) -> str:
    names = list(table)
    also = ""
    if product == "HyperConverged":
        first, last = hyperconverged.downstream(names[0]), hyperconverged.downstream(names[-1])
        also = f", or 4.N for OpenShift Virtualization {first} to {last}"
    known = f"Known are {names[0]} to {names[-1]}{also}."
    newest = parse(names[-1])
    if version is None or newest is None or version.release <= (newest.major, newest.minor):
        return known
    return f"{known} With versions.allowNewer a newer minor is rendered as {names[-1]}."


def resolve(cluster: Cluster, origin: Origin, facts: Facts | None, tree: Tree) -> tuple[Site | None, list[Problem]]:
    """The site, or none where a version is unknown; and what is wrong with versions and the operator object."""
    spec, at = cluster.spec, origin.below("spec")
    lookup = _Lookup(spec.versions.allow_newer)
    releases = list(_releases(spec, at, lookup))
    _find_deschedulers(spec, at, lookup)
    if spec.upgrading_to is not None:
        lookup.problems.extend(_check_upgrade(spec.versions, spec.upgrading_to, at.below("upgradingTo")))
    if None in releases or not releases:
        return None, lookup.problems
    known = tuple(release for release in releases if release is not None)
    operator, rebalanced = _operator(spec, known), _descheduler(spec)
    if spec.crds and rebalanced.schemas and not leaves_repository(spec.crds):
        from renderer.kinds import operator_schema  # late: few clusters name their definitions

        settled = operator_schema.settle(rebalanced.schemas, tree, normal(spec.crds), at.below("crds"))
        rebalanced = replace(rebalanced, schemas=settled.schemas)
        lookup.problems.extend(settled.problems)
    lookup.problems.extend(_check_operator(operator, known, at.below("operatorResource")))
    site = Site(
        origin=origin,
        platform=spec.platform,
        topology=spec.topology,
        engine=spec.delivery.engine,
        substitution=spec.delivery.substitution == "on",
        operator=operator,
        releases=known,
        descheduler=rebalanced,
        kubernetes=next(iter(_stages(spec, "kubernetes")), None),
        prometheus=_stages(spec, "prometheus"),
        monitoring=_monitoring(spec),
        worker_pools=tuple(spec.worker_pools or _POOLS.get(spec.topology, ("worker",))),
        crds=normal(spec.crds) if spec.crds else None,
        facts=facts,
        tree=tree,
    )
    return site, lookup.problems


def _releases(spec: ClusterSpec, at: Origin, lookup: _Lookup) -> Iterator[OperatorRelease | None]:
    now, coming = spec.versions, spec.upgrading_to
    yield _release(now.hyperconverged, now.kubevirt, now, at.below("versions"), lookup)
    if coming is None or not (coming.hyperconverged or coming.kubevirt):
        return
    place = at.below("upgradingTo")
    kubevirt_text = coming.kubevirt or (None if coming.hyperconverged else now.kubevirt)
    yield _release(coming.hyperconverged or now.hyperconverged, kubevirt_text, coming, place, lookup)


def _release(
    operator_text: str | None, kubevirt_text: str | None, given: NextVersions, at: Origin, lookup: _Lookup
) -> OperatorRelease | None:
    if operator_text is None and kubevirt_text is None:
        message = "neither hyperconverged nor kubevirt is given: one of them decides what can be rendered"
        lookup.problems.append(Problem("policy/missing-key", at, message, "Add the version that the cluster runs."))
        return None
    operator = None
    if operator_text is not None:
        place = at.below("hyperconverged")
        operator = lookup.find("HyperConverged", hyperconverged.RELEASES, operator_text, place)
        if operator is None:
            return None
    installed = operator.release.kubevirt if operator else None
    found = lookup.find("KubeVirt", kubevirt.RELEASES, kubevirt_text or installed or "", at.below("kubevirt"))
    if found is None:
        return None
    if given.kubevirt and installed and found.version.name != installed:
        message = (
            f"HyperConverged {operator.release.minor} installs KubeVirt {installed}, not {kubevirt_text}"
            if operator
            else ""
        )
        lookup.problems.append(
            Problem("release/mismatch", at.below("kubevirt"), message, "Correct one of the two versions.")
        )
    return OperatorRelease(operator.release if operator else None, found.release, found.version.patch)


_PRODUCTS = {
    "hyperconverged": "hyperconverged",
    "kubevirt": "kubevirt",
    "deschedulerOperator": "descheduler_operator",
    "descheduler": "descheduler",
    "kubernetes": "kubernetes",
    "prometheus": "prometheus",
}
"""Every key of `versions`, and its field."""


def _check_upgrade(now: NextVersions, coming: NextVersions, at: Origin) -> Iterator[Problem]:
    for name, field_name in _PRODUCTS.items():
        texts = [getattr(versions, field_name) for versions in (now, coming)]
        before, after = (_ordered(name, text) for text in texts)
        if before and after and after[: len(before)] < before[: len(after)]:
            message = f"upgradingTo.{name} {texts[1]} is older than the present {texts[0]}"
            yield Problem("release/mismatch", at.below(name), message, "Swap the two, or remove upgradingTo.")
        if texts[1] and not texts[0] and name.startswith("descheduler"):
            message = f"upgradingTo.{name} {texts[1]} has no present version beside it: what runs now would be unknown"
            help = f"Add versions.{name}, or move this one there if nothing is installed yet."
            yield Problem("policy/missing-key", at.below(name), message, help)


def _stages(spec: ClusterSpec, name: str) -> tuple[Version, ...]:
    """The present and the coming version of a product, as far as they are given, the older first."""
    stages = (spec.versions, spec.upgrading_to)
    found = [parse(getattr(versions, name) or "") for versions in stages if versions is not None]
    return tuple(sorted((one for one in found if one), key=lambda one: one.release))


def _ordered(name: str, text: str | None) -> tuple[int, ...]:
    """A version to be compared, with its patch release where that is given; empty where it is not a version."""
    version = parse(text or "")
    if version is not None and name == "hyperconverged":
        version = hyperconverged.upstream(version)
    return tuple(part for part in (version.major, version.minor, version.patch) if part is not None) if version else ()


def _find_deschedulers(spec: ClusterSpec, at: Origin, lookup: _Lookup) -> None:
    for versions, place in ((spec.versions, at.below("versions")), (spec.upgrading_to, at.below("upgradingTo"))):
        if versions is None:
            continue
        if versions.descheduler_operator:
            exported = spec.crds is not None and versions is spec.versions
            lookup.find_operator(versions.descheduler_operator, place.below("deschedulerOperator"), exported=exported)
        if versions.descheduler:
            lookup.find("descheduler", descheduler.RELEASES, versions.descheduler, place.below("descheduler"))
        lookup.problems.extend(_check_platform(spec.platform, versions, place))


def _check_platform(platform: str, versions: NextVersions, at: Origin) -> Iterator[Problem]:
    if platform == "openshift" and versions.descheduler:
        message = "OpenShift runs the descheduler operator, not the upstream descheduler"
        yield Problem("release/mismatch", at.below("descheduler"), message, "Give deschedulerOperator: instead.")
    if platform == "kubernetes" and versions.descheduler_operator:
        message = "the descheduler operator runs on OpenShift only"
        yield Problem("release/mismatch", at.below("deschedulerOperator"), message, "Give descheduler: instead.")
    if platform == "kubernetes" and (versions.hyperconverged or "").startswith("4."):
        message = "4.N numbers OpenShift Virtualization, which runs on OpenShift only"
        yield Problem(
            "release/mismatch", at.below("hyperconverged"), message, 'Give the upstream number, as in "1.14".'
        )


def _descheduler(spec: ClusterSpec) -> Descheduler:
    newer = spec.versions.allow_newer
    stages = [versions for versions in (spec.versions, spec.upgrading_to) if versions is not None]
    csvs = [parse(versions.descheduler_operator or "") for versions in stages]
    minors = [parse(versions.descheduler or "") for versions in stages]
    schemas = [csv and descheduler_operator.schema(csv, allow_newer=newer) for csv in csvs]
    known = [minor and look_up(descheduler.RELEASES, minor, allow_newer=newer) for minor in minors]
    return Descheduler(
        tuple(dict.fromkeys(schema for schema in schemas if schema)),
        tuple(dict.fromkeys(one.release.minor for one in known if one)),
    )


def _monitoring(spec: ClusterSpec) -> MonitoringSite:
    given, openshift = spec.monitoring, spec.platform == "openshift"
    thanos = "https://thanos-querier.openshift-monitoring.svc:9091"
    certificate, secret = given.ca_config_map, given.token_secret
    return MonitoringSite(
        url=given.url or (thanos if openshift else None),
        node_names=given.node_names or ("name" if openshift else "address"),
        scrape_interval=seconds(given.scrape_interval),
        rules=given.rules,
        rule_namespace=given.rule_namespace or ("openshift-kube-descheduler-operator" if openshift else "monitoring"),
        rule_labels=given.rule_labels,
        ca_config_map=(certificate.name, certificate.key) if certificate else None,
        token_secret=(secret.namespace, secret.name) if secret else None,
    )


def _operator(spec: ClusterSpec, releases: tuple[OperatorRelease, ...]) -> OperatorObject:
    given, release = spec.operator_resource, releases[0].hyperconverged
    upstream_name = hyperconverged.NAME if release else "kubevirt"
    namespace = "openshift-cnv" if spec.platform == "openshift" else upstream_name
    return OperatorObject(
        form=given.form or ("component" if given.base else "partial"),
        api_version=given.api_version or (release.default_api_version if release else kubevirt.API_VERSION),
        kind="HyperConverged" if release else "KubeVirt",
        name=given.name or upstream_name,
        namespace=given.namespace or namespace,
        base=_base(spec),
    )


def _base(spec: ClusterSpec) -> str | None:
    path = spec.operator_resource.base
    return normal(path) if path and not leaves_repository(path) else path


def moved(site: Site, cluster: Cluster, origin: Origin, facts: Facts | None) -> Site:
    """The site of a cluster that differs from the site's own in name, labels and base only."""
    return replace(site, origin=origin, facts=facts, operator=based(site, _base(cluster.spec)).operator)


def based(site: Site, base: str | None) -> Site:
    """The same site with another base of its operator object."""
    return replace(site, operator=replace(site.operator, base=base))


def _check_operator(operator: OperatorObject, releases: tuple[OperatorRelease, ...], at: Origin) -> Iterator[Problem]:
    for release in releases:
        served = release.hyperconverged.served if release.hyperconverged else (kubevirt.API_VERSION,)
        if operator.api_version not in served:
            message = f"{release.name} does not serve {operator.api_version}"
            yield Problem("release/unsupported", at.below("apiVersion"), message, f"Use {' or '.join(served)}.")
    if operator.kind == "HyperConverged" and operator.name != hyperconverged.NAME:
        message = f"HyperConverged accepts no other name than {hyperconverged.NAME}"
        yield Problem("policy/value", at.below("name"), message, "Leave name out.")
