"""Groups of rules as the object that a cluster's Prometheus takes them from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from renderer import catalog, emit
from renderer.kinds.base import Request, Site
from renderer.kinds.delivery import engine_annotations
from renderer.model import Body, Manifest, Problem
from renderer.releases import prometheus

FOLDER = "recording-rules"
LOOK_BACK = 300
"""Seconds that Prometheus looks back for the last sample of a series; the default of --query.lookback-delta."""
API_VERSION = "monitoring.coreos.com/v1"


def requests(*, groups: Iterable[str], site: Site, policy: str) -> Iterator[Request]:
    """The catalogue's groups by name, and those that they need: one object each, and what may keep them unread.

    The objects do not depend on the policy: several that bring the same group bring equal manifests, which an overlay
    holds once.
    """
    found = catalog.groups(groups, source(site))
    if found:
        yield from judge(site)
        yield from _judge_release(found, site)
    for name, group in found.items():
        yield manifest(f"kubevirt-policy-{name}", [_group(group)], site=site, policy=policy)


def source(site: Site) -> catalog.Source:
    """What the catalogue's expressions depend on."""
    return catalog.Source(site.monitoring.node_names, site.monitoring.scrape_interval)


def manifest(name: str, groups: Sequence[Body], *, site: Site, policy: str) -> Manifest:
    """One object with groups as Prometheus writes them: a PrometheusRule, or a ConfigMap with a rule file."""
    custom = site.monitoring.rules == "object"
    metadata: dict[str, Any] = {"name": name, "namespace": site.monitoring.rule_namespace}
    if site.monitoring.rule_labels:
        metadata["labels"] = dict(site.monitoring.rule_labels)
    text = emit.remembered({"groups": list(groups)})
    if annotations := engine_annotations(site, custom=custom, text=text):
        metadata["annotations"] = annotations
    if custom:
        body: Body = {"apiVersion": API_VERSION, "kind": "PrometheusRule", "metadata": metadata}
        return Manifest(FOLDER, name, body | {"spec": {"groups": list(groups)}}, policy)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {f"{name}.yaml": text}}
    return Manifest(FOLDER, name, body, policy)


def judge(site: Site) -> Iterator[Problem]:
    """Whether the cluster's Prometheus takes the objects at all."""
    if site.monitoring.rules == "object":
        yield from _judge_labels(site) if site.platform == "kubernetes" else _judge_namespace(site)


def _judge_namespace(site: Site) -> Iterator[Problem]:
    """OpenShift's own Prometheus looks into namespaces with a label that platform namespaces have."""
    namespace = site.monitoring.rule_namespace
    if not namespace.startswith("openshift-"):
        message = (
            f"{namespace} is no namespace of the platform: unless it is labelled openshift.io/cluster-monitoring=true, "
            "the Prometheus for user workloads takes these rules, and it has no series of nodes"
        )
        place = site.origin.below("spec", "monitoring", "ruleNamespace")
        yield Problem("rules/namespace", place, message, "Label the namespace, or leave ruleNamespace out.")


def _judge_labels(site: Site) -> Iterator[Problem]:
    """Which rules a Prometheus takes is its own choice (`ruleSelector`)."""
    if not site.monitoring.rule_labels:
        message = (
            "the PrometheusRules carry no labels: a Prometheus whose ruleSelector asks for one passes over them, "
            "and nothing says so"
        )
        help = (
            "See which labels it selects: kubectl get prometheus -A -o yaml. Then write it as "
            "ruleLabels: {release: kube-prometheus-stack}, as the chart of that name has it."
        )
        yield Problem("rules/no-labels", site.origin.below("spec", "monitoring"), message, help)


def _judge_release(names: Iterable[str], site: Site) -> Iterator[Problem]:
    since, name = max((catalog.SINCE.get(name, (0, 0)), name) for name in names)
    for version in site.prometheus:
        if version.release < since:
            message = (
                f"the catalogue's group {name} needs Prometheus {prometheus.written(since)}: {version} does not know "
                "all of its functions and refuses the whole file"
            )
            place = site.origin.below("spec", "versions", "prometheus")
            yield Problem("rules/unsupported", place, message, "Upgrade that Prometheus, or do without the group.")
            return


def judge_scrapes(site: Site) -> Iterator[Problem]:
    """Prometheus calls a series gone when its last sample is older than it looks back."""
    interval = site.monitoring.scrape_interval
    if interval > LOOK_BACK:
        message = (
            f"scrapes {interval}s apart are further apart than the {LOOK_BACK}s that Prometheus looks back: in between "
            "the nodes have no sample, and a cycle of the descheduler that finds one without ends for all"
        )
        place = site.origin.below("spec", "monitoring", "scrapeInterval")
        help = "Scrape at least every 2m, so that one may fail; or raise --query.lookback-delta, and ignore this."
        yield Problem("rules/scrape-interval", place, message, help)


def _group(group: catalog.Group) -> Body:
    return {"name": group.name, "interval": group.interval, "rules": [_rule(rule) for rule in group.rules]}


def _rule(rule: catalog.Rule) -> Body:
    kind = "record" if rule.record else "alert"
    given = {"for": rule.wait, "labels": dict(rule.labels), "annotations": dict(rule.annotations)}
    return {kind: rule.name, "expr": rule.expr} | {key: value for key, value in given.items() if value}
