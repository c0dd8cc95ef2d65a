"""Policies against what the descheduler operator's own code makes of many `KubeDescheduler` objects.

Each recorded entry is read as the policy that it expresses.  What the operator refuses must be an error here.  For
all others the rendered object must be the recorded one with its release's defaults written out, and the policy that
we render for the upstream descheduler must mean what the operator's policy means, but for the listed differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
import yaml

from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.kinds.upstream_policy import RECORDS, Source, policy
from renderer.releases.descheduler import RELEASES
from renderer.releases.descheduler_operator import TABLE
from renderer.releases.operator_metrics import METRICS
from tests import repository
from tests.facts import facts

SCHEMAS = ("4.18", "4.19", "4.20", "4.21", "4.22", "4.23")
CSV = {"4.18": "5.1.5", "4.19": "5.2.2", "4.20": "5.3.1", "4.21": "5.3.3", "4.22": "5.4.0", "4.23": "5.4.0"}
RELIEVE = "KubeVirtRelieveAndMigrate"

# What differs between the operator's policy and ours, by schema, and why.
DIFFERENCES: dict[str, dict[str, str]] = {
    "4.18": {
        "maxNoOfPodsToEvictPerNode": "no limit per node; the plugin takes one pod with Prometheus",
        "LowNodeUtilization.evictionLimits": "came with 4.22",
        "DefaultEvictor.noEvictionPolicy": "came with 4.20",
    },
    "4.19": {
        "LowNodeUtilization.evictionLimits": "came with 4.22",
        "DefaultEvictor.noEvictionPolicy": "came with 4.20",
    },
    "4.20": {"LowNodeUtilization.evictionLimits": "came with 4.22"},
    "4.21": {"LowNodeUtilization.evictionLimits": "came with 4.22"},
    "4.22": {},
    "4.23": {"KubevirtMigrationAware": "the migration cooldown, which upstream does not have"},
}
# Where the object says nothing about limits, and its release has no default for these profiles: we always write them.
UNSTATED = {
    "maxNoOfPodsToEvictPerNode",
    "maxNoOfPodsToEvictTotal",
    "LowNodeUtilization.evictionLimits",
}
# Upstream before 0.34 has no such field.
UPSTREAM = {"0.33": {"DefaultEvictor.noEvictionPolicy"}, "0.36": set()}


@cache
def entries(schema: str) -> list[dict[str, Any]]:
    path = facts("facts/operator-results") / f"{schema}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(), Loader=loader)  # type: ignore[no-any-return]  # noqa: S506  (a safe loader)


def as_policy(entry: dict[str, Any], schema: str) -> dict[str, Any] | None:
    """The policy that a recorded spec expresses, defaults of its release stated; None where none can."""
    spec, custom = entry["spec"], entry["spec"].get("profileCustomizations", {})
    names = [neutral(name) for name in spec["profiles"]]
    if "" in custom.values() or any(name not in TABLE[schema].profiles for name in spec["profiles"]):
        return None
    if custom.get("devHighNodeUtilizationThresholds", "Modest") != "Modest":
        return None  # policies have no field for it
    metric = metric_of(custom, names, schema)
    if metric is None and RELIEVE in names:
        return None  # requests of pods: we always write a metric for this profile
    limits = spec.get("evictionLimits", {})
    wanted = {
        "mode": spec["mode"],
        "interval": f"{spec['deschedulingIntervalSeconds']}s",
        "profiles": names,
        "thresholds": thresholds_of(custom, names, schema),
        "utilization": metric,
        "evictions": {
            ours: limits[theirs] for ours, theirs in (("total", "total"), ("perNode", "node")) if theirs in limits
        },
        "namespaces": custom.get("namespaces"),
        "priorityThreshold": priority_of(custom),
        "podLifetime": custom.get("podLifetime"),
        "migrationCooldown": cooldown_of(custom),
    }
    return {key: value for key, value in wanted.items() if value}


def neutral(profile: str) -> str:
    return {"DevKubeVirtRelieveAndMigrate": RELIEVE, "DevPreviewLongLifecycle": "LongLifecycle"}.get(profile, profile)


def metric_of(custom: dict[str, Any], names: list[str], schema: str) -> Any:
    stated = custom.get("devActualUtilizationProfile")
    if stated is None:
        default = {"4.18": None, "4.19": "CPUCombined", "4.20": "CPUCombined"}.get(schema, "CPUMemoryCombined")
        return default if RELIEVE in names else None
    if stated.startswith("query:"):
        return {"query": stated.removeprefix("query:")}
    return next((name for name, one in METRICS.items() if one.spelling == stated), stated)


def thresholds_of(custom: dict[str, Any], names: list[str], schema: str) -> dict[str, Any]:
    stated = {
        ours: custom[theirs]
        for ours, theirs in (("deviation", "devDeviationThresholds"), ("static", "devLowNodeUtilizationThresholds"))
        if theirs in custom
    }
    if stated or RELIEVE not in names:
        return stated
    return {"static": "Medium"} if schema == "4.18" else {"deviation": "AsymmetricLow"}


def priority_of(custom: dict[str, Any]) -> dict[str, Any]:
    pairs = (("value", "thresholdPriority"), ("className", "thresholdPriorityClassName"))
    return {ours: custom[theirs] for ours, theirs in pairs if theirs in custom}


def cooldown_of(custom: dict[str, Any]) -> dict[str, Any]:
    pairs = (
        ("base", "devMigrationCooldown"),
        ("max", "devMaxMigrationCooldown"),
        ("window", "devMigrationHistoryWindow"),
    )
    return {ours: custom[theirs] for ours, theirs in pairs if theirs in custom}


def render(wanted: dict[str, Any], schema: str, scheduler: str | None) -> Any:
    files: dict[str, str] = {}
    spec: dict[str, Any] = {"versions": {"hyperconverged": "1.17", "deschedulerOperator": CSV[schema]}}
    if schema == "4.23":  # its version number is that of 4.22: the CRD decides
        files["crds/it.yaml"] = facts(f"crds/kubedescheduler-{schema}.yaml").read_text()
        spec["crds"] = "crds"
    if scheduler:
        body = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {"profile": scheduler}}
        files["scheduler.yaml"] = yaml.safe_dump(body)
        wanted = {**wanted, "manifests": ["scheduler.yaml"]}
    return repository.render([repository.cluster(**spec), repository.policy("RebalancePolicy", **wanted)], files)


def settled(entry: dict[str, Any], wanted: dict[str, Any], schema: str) -> dict[str, Any]:
    """The recorded spec as we write it: its release's defaults stated, in the spelling that we choose."""
    spec, table = convert(wanted), TABLE[schema]
    profiles = [RELIEVE if name == "DevKubeVirtRelieveAndMigrate" else name for name in entry["spec"]["profiles"]]
    profiles = ["LongLifecycle" if name == "DevPreviewLongLifecycle" else name for name in profiles]
    if RELIEVE not in table.profiles:
        profiles = [f"Dev{name}" if name == RELIEVE else name for name in profiles]
    limits = {"total": spec.total, "node": spec.per_node}
    custom = {**entry["spec"].get("profileCustomizations", {}), "devEnableEvictionsInBackground": True}
    if spec.metric is not None:
        custom["devActualUtilizationProfile"] = (
            METRICS[spec.metric].spelling if isinstance(spec.metric, str) else f"query:{spec.metric.query}"
        )
    if spec.balances_load:
        name = "devDeviationThresholds" if spec.deviation else "devLowNodeUtilizationThresholds"
        custom[name] = spec.deviation or spec.static
    if "CompactAndScale" in profiles:
        custom["devHighNodeUtilizationThresholds"] = "Modest"
    custom.pop("podLifetime", None)
    if "LifecycleAndUtilization" in profiles:
        custom["podLifetime"] = spec.pod_lifetime or "24h"
    return {
        **entry["spec"],
        "profiles": profiles,
        "evictionLimits": {name: value for name, value in limits.items() if name in table.limits},
        "profileCustomizations": custom,
    }


def convert(wanted: dict[str, Any]) -> RebalanceSpec:
    return msgspec.convert({"clusters": {}, **wanted}, RebalanceSpec)


def meaning(policy: dict[str, Any]) -> dict[str, Any]:
    """A policy as flat facts, whatever style a release has for them."""
    flat = {key: value for key, value in policy.items() if key.startswith("maxNoOf") or key == "nodeSelector"}
    flat["metricsProviders"] = [provider["source"] for provider in policy.get("metricsProviders", [])]
    flat["profiles"] = [neutral(profile["name"]) for profile in policy["profiles"]]
    for index, profile in enumerate(policy["profiles"]):
        for plugin in profile["pluginConfig"]:
            for key, value in settings(plugin["name"], plugin.get("args") or {}):
                flat[f"{index}.{plugin['name']}.{key}"] = value
        for point, plugins in profile["plugins"].items():
            for name in plugins.get("enabled", []):
                flat[f"{index}.{name}.at.{point}"] = True
    return flat


def settings(name: str, args: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if name == "DefaultEvictor":
        protections = args.get("podProtections", {})
        yield (
            "local",
            args.get("evictLocalStoragePods") or "PodsWithLocalStorage" in protections.get("defaultDisabled", ()),
        )
        yield "claims", not (args.get("ignorePvcPods") or "PodsWithPVC" in protections.get("extraEnabled", ()))
        yield "noEvictionPolicy", args.get("noEvictionPolicy")
        yield "priority", {key: value for key, value in args.get("priorityThreshold", {}).items() if value != ""}
        return
    yield "here", True
    for key, value in args.items():
        if key in ("namespaces", "evictableNamespaces"):
            yield key, {kind: own(names) for kind, names in value.items()}
        elif key == "metricsUtilization":
            yield "query", value["prometheus"]["query"]
        else:
            yield key, value


def own(names: list[str]) -> list[str]:
    """The namespaces that a policy names, without those that a platform protects."""
    return [
        name
        for name in names
        if name not in ("kube-system", "hypershift", "openshift", "kubevirt") and not name.startswith("openshift-")
    ]


def same_query(ours: str, theirs: str) -> bool:
    """Whether our record stands for the operator's query."""
    words = {
        "CPUPressureByUtilization": "> 0.7",
        **{name: one.query for name, one in METRICS.items() if name != "CPUPressureByUtilization"},
    }
    names = [name for name, record in RECORDS.items() if record == ours]
    return ours == theirs or any(words[name] in theirs for name in names)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> set[str]:
    """What is not the same, by name without the profile's number; queries are compared by what they stand for."""
    out = set()
    for key in ours.keys() | theirs.keys():
        left, right = ours.get(key), theirs.get(key)
        if key.endswith(".query") and left and right and same_query(left, right):
            continue
        if left != right:
            name = key.partition(".")[2] if key[0].isdigit() else key
            out.add(name.partition(".")[0] if name.startswith("KubevirtMigrationAware") else name)
    return out


@pytest.mark.parametrize("schema", SCHEMAS)
def test_refused_there_is_an_error_here(schema: str) -> None:
    seen = 0
    for entry in entries(schema):
        wanted = as_policy(entry, schema)
        if "refused" not in entry or wanted is None:
            continue
        try:
            outcome = render(wanted, schema, entry["spec"].get("schedulerProfile") or entry.get("schedulerProfile"))
        except KeyError as error:
            pytest.fail(f"{entry['name']}: {error}")
        assert repository.errors(outcome), f"{schema} {entry['name']}: {entry['refused']}"
        seen += 1
    assert seen >= 15


@pytest.mark.parametrize("schema", SCHEMAS)
def test_objects_and_their_meaning(schema: str) -> None:
    compared: Counter[str] = Counter()
    for entry in entries(schema):
        wanted = as_policy(entry, schema)
        if "policy" not in entry or wanted is None:
            compared["no policy says that"] += 1
            continue
        if pruned(entry["spec"], schema):
            compared["the API server prunes a field"] += 1
            continue
        scheduler = entry.get("schedulerProfile")
        outcome = render(wanted, schema, scheduler)
        refused = repository.errors(outcome)
        if refused:
            assert refused <= WE_REFUSE, (entry["name"], outcome.findings)
            compared["we refuse what it ignores"] += 1
            continue
        body = repository.loaded(outcome, "descheduler/kubedescheduler.yaml")
        assert body["spec"] == settled(entry, wanted, schema), entry["name"]
        compare(entry, wanted, schema)
        compared["the same"] += 1
    assert compared["the same"] >= 34, compared


def pruned(spec: dict[str, Any], schema: str) -> bool:
    """Whether a recorded spec has fields that never reach the operator."""
    table = TABLE[schema]
    limits, custom = spec.get("evictionLimits", {}), spec.get("profileCustomizations", {})
    return not (limits.keys() <= table.limits and custom.keys() <= table.customizations)


# Accepted by the operator and without effect, or with the opposite effect: a deviation that LongLifecycle ignores,
# included namespaces that LowNodeUtilization ignores, and one profile under two names.
WE_REFUSE = {"rebalance/ignored", "rebalance/protected-namespace", "rebalance/exclusive-profiles"}


def compare(entry: dict[str, Any], wanted: dict[str, Any], schema: str) -> None:
    for minor, missing in UPSTREAM.items():
        ours = policy(convert(wanted), RELEASES[minor], Source("http://prometheus"), ("kube-system", "kubevirt"))
        found = differences(meaning(ours), meaning(entry["policy"]))
        allowed = set(DIFFERENCES[schema]) | missing
        if "evictionLimits" not in entry["spec"]:
            allowed |= UNSTATED if RELIEVE not in wanted["profiles"] or schema == "4.18" else set()
        assert found <= allowed, (schema, minor, entry["name"], found - allowed)
