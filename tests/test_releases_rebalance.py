"""Rebalance policies × every release: what is rendered is exactly what that release accepts, or it is refused."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema
import pytest
import yaml

from renderer.kinds.upstream_policy import RECORDS
from renderer.releases.descheduler import MINORS
from renderer.releases.descheduler_operator import SCHEMAS
from tests import repository
from tests.facts import facts

VERSIONS = {
    "4.12": "4.12.2",
    "4.13": "4.13.1",
    "4.14": "4.14.2",
    "4.15": "5.0.0",
    "4.16": "5.0.4",
    "4.17": "5.1.0",
    "4.18": "5.1.5",
    "4.19": "5.2.2",
    "4.20": "5.3.1",
    "4.21": "5.3.3",
    "4.22": "5.4.0",
    "4.23": "5.4.0",
}

BASE: dict[str, Any] = {"mode": "Automatic"}
EVERYTHING = {
    **BASE,
    "mode": "Predictive",
    "interval": "1h30m",
    "profiles": ["KubeVirtRelieveAndMigrate", "SoftTopologyAndDuplicates", "AffinityAndTaints", "EvictPodsWithPVC"],
    "thresholds": {"deviation": "AsymmetricHigh"},
    "utilization": {"query": "1 - avg by (instance) (rate(node_cpu_seconds_total{mode='idle'}[5m]))"},
    "evictions": {"perNode": 3, "total": 9},
    "namespaces": {"excluded": ["databases"]},
    "priorityThreshold": {"value": 1000},
    "onRemoval": "Keep",
}
OLD = {
    **BASE,
    "profiles": ["LifecycleAndUtilization", "TopologyAndDuplicates"],
    "thresholds": {"static": "High"},
    "podLifetime": "36h",
    "priorityThreshold": {"className": "vm-high"},
    "namespaces": {"excluded": ["databases"]},
}
# Policy, the first schema that accepts it, and the code with which older ones refuse it.
POLICIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "defaults": (BASE, "4.21", "rebalance/unsupported"),
    "combined": ({**BASE, "utilization": "CPUCombined"}, "4.18", "rebalance/unsupported"),
    "pressure": ({**BASE, "utilization": "IOPressure"}, "4.18", "rebalance/unsupported"),
    "static": (
        {**BASE, "utilization": "CPUCombined", "thresholds": {"static": "Low"}},
        "4.18",
        "rebalance/unsupported",
    ),
    "everything": (EVERYTHING, "4.18", "rebalance/unsupported"),
    "old": (OLD, "4.12", ""),
    "included": ({**BASE, "profiles": ["AffinityAndTaints"], "namespaces": {"included": ["a"]}}, "4.12", ""),
    "long": ({**BASE, "profiles": ["LongLifecycle"]}, "4.17", "rebalance/no-background"),
    "cooldown": ({**BASE, "migrationCooldown": {"base": "10m"}}, "4.23", "rebalance/unsupported"),
    "storage": (
        {**BASE, "profiles": ["AffinityAndTaints", "EvictPodsWithLocalStorage"]},
        "4.17",
        "rebalance/no-background",
    ),
}


def on(schema: str, wanted: dict[str, Any], coming: str = "") -> Any:
    text = facts(f"crds/kubedescheduler-{schema}.yaml").read_text()
    spec: dict[str, Any] = {"versions": {"hyperconverged": "1.17", "deschedulerOperator": VERSIONS[schema]}}
    if coming:
        spec["upgradingTo"] = {"deschedulerOperator": VERSIONS[coming]}
    documents = [repository.cluster(**spec, crds="crds/all.yaml"), repository.policy("RebalancePolicy", **wanted)]
    return repository.render(documents, {"crds/all.yaml": text})


@pytest.mark.parametrize(("version", "exported"), [("5.0.4", "4.23"), ("5.1.0", "4.21"), ("5.3.1", "4.19")])
def test_a_definition_of_another_release_settles_nothing(version: str, exported: str) -> None:
    text = facts(f"crds/kubedescheduler-{exported}.yaml").read_text()
    versions = {"hyperconverged": "1.17", "deschedulerOperator": version}
    wanted = repository.policy("RebalancePolicy", mode="Automatic", profiles=["AffinityAndTaints"])
    with_it = repository.render([repository.cluster(versions=versions, crds="c.yaml"), wanted], {"c.yaml": text})
    without = repository.render([repository.cluster(versions=versions), wanted])
    assert "release/mismatch" in {finding.code for finding in with_it.findings}
    path = "descheduler/kubedescheduler.yaml"
    assert repository.loaded(with_it, path) == repository.loaded(without, path)


@cache
def rules_of(schema: str) -> dict[str, Any]:
    crd = yaml.safe_load(facts(f"crds/kubedescheduler-{schema}.yaml").read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]  # type: ignore[no-any-return]


def wrong(body: dict[str, Any], schema: str) -> list[str]:
    """What the CRD of a schema says against an object: wrong values, and fields that it does not have."""
    rules = rules_of(schema)
    found = [error.message for error in jsonschema.Draft202012Validator(rules).iter_errors(body)]
    return found + list(unknown(rules, body, ""))


def unknown(rules: dict[str, Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, dict) or "properties" not in rules:
        return []
    found = [f"{path}.{key}" for key in value if key not in rules["properties"]]
    for key, child in value.items():
        found += unknown(rules["properties"].get(key, {}), child, f"{path}.{key}")
    return found


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("name", POLICIES)
def test_schemas(name: str, schema: str) -> None:
    wanted, since, code = POLICIES[name]
    outcome = on(schema, wanted)
    if SCHEMAS.index(schema) < SCHEMAS.index(since):
        assert code in repository.errors(outcome)
        return
    assert not repository.errors(outcome), outcome.findings
    body = repository.loaded(outcome, "descheduler/kubedescheduler.yaml")
    assert wrong(body, schema) == []
    assert body["spec"]["mode"] == wanted["mode"]
    assert "" not in body["spec"]["profileCustomizations"].values()
    owned = "devLowNodeUtilizationThresholds" in body["spec"]["profileCustomizations"]
    assert owned or SCHEMAS.index(schema) > SCHEMAS.index("4.17")


@pytest.mark.parametrize(("schema", "coming"), list(pairwise(SCHEMAS[:-1])))
@pytest.mark.parametrize("name", POLICIES)
def test_upgrades(name: str, schema: str, coming: str) -> None:
    """Between two releases only what both accept is rendered, and what either rejects is refused."""
    wanted, since, code = POLICIES[name]
    outcome = on(schema, wanted, coming)
    if SCHEMAS.index(schema) < SCHEMAS.index(since):
        assert code in repository.errors(outcome)
        return
    assert not repository.errors(outcome), outcome.findings
    body = repository.loaded(outcome, "descheduler/kubedescheduler.yaml")
    assert wrong(body, schema) == []
    assert wrong(body, coming) == []


def test_the_exported_definition_decides_between_two_builds_of_one_version() -> None:
    cooldown, _, _ = POLICIES["cooldown"]
    assert "rebalance/unsupported" in repository.errors(on("4.22", cooldown))
    custom = repository.loaded(on("4.23", cooldown), "descheduler/kubedescheduler.yaml")["spec"][
        "profileCustomizations"
    ]
    assert custom["devMigrationCooldown"] == "10m"
    assert custom["devMaxMigrationCooldown"] == "6h"


# The first minor that has a field; the Go types of every tag were read for it.
TOP = {
    "maxNoOfPodsToEvictPerNode": 28,
    "nodeSelector": 28,
    "maxNoOfPodsToEvictTotal": 31,
    "metricsProviders": 33,
}
ARGUMENTS: dict[str, dict[str, int]] = {
    "LowNodeUtilization": {
        "thresholds": 28,
        "targetThresholds": 28,
        "useDeviationThresholds": 28,
        "evictableNamespaces": 28,
        "metricsUtilization": 33,
        "evictionLimits": 33,
    },
    "HighNodeUtilization": {"thresholds": 28, "evictableNamespaces": 28},
    "DefaultEvictor": {
        "evictLocalStoragePods": 28,
        "ignorePvcPods": 28,
        "priorityThreshold": 28,
        "podProtections": 34,
        "noEvictionPolicy": 34,
    },
    "PodLifeTime": {"maxPodLifeTimeSeconds": 28, "namespaces": 28},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 28, "includingInitContainers": 28, "namespaces": 28},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": 28, "namespaces": 28},
    "RemoveDuplicates": {"namespaces": 28},
    "RemovePodsViolatingInterPodAntiAffinity": {"namespaces": 28},
    "RemovePodsViolatingNodeTaints": {"namespaces": 28},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": 28, "namespaces": 28},
}
UPSTREAM: dict[str, tuple[dict[str, Any], int, str]] = {
    "defaults": (BASE, 33, "rebalance/unsupported"),
    "everything": (EVERYTHING, 33, "rebalance/unsupported"),
    "old": (OLD, 28, ""),
    "measured": ({**OLD, "utilization": "CPUUsage"}, 33, "rebalance/unsupported"),
    "long": ({**BASE, "profiles": ["LongLifecycle"]}, 32, "rebalance/no-background"),
    "cooldown": ({**BASE, "migrationCooldown": {}}, 99, "rebalance/unsupported"),
}


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", UPSTREAM)
def test_upstream(name: str, minor: str) -> None:
    wanted, since, code = UPSTREAM[name]
    number = int(minor.partition(".")[2])
    monitoring = {"url": "http://prometheus:9090", "tokenSecret": {"namespace": "descheduler-token", "name": "it"}}
    spec: dict[str, Any] = {"versions": {"kubevirt": "1.7", "descheduler": minor}, "monitoring": monitoring}
    documents = [repository.cluster(platform="kubernetes", **spec), repository.policy("RebalancePolicy", **wanted)]
    outcome = repository.render(documents)
    if number < since:
        assert code in repository.errors(outcome)
        return
    assert not repository.errors(outcome), outcome.findings
    policy = yaml.safe_load(repository.loaded(outcome, "descheduler/configmap.yaml")["data"]["policy.yaml"])
    assert all(TOP[key] <= number for key in policy if key not in ("apiVersion", "kind", "profiles"))
    for profile in policy["profiles"]:
        evictor: set[str] = set()
        for plugin in profile["pluginConfig"]:
            assert all(ARGUMENTS[plugin["name"]][key] <= number for key in plugin["args"])
            evictor |= set(plugin["args"]) if plugin["name"] == "DefaultEvictor" else set()
        assert not ("podProtections" in evictor and {"evictLocalStoragePods", "ignorePvcPods"} & evictor)
    if not isinstance(wanted.get("utilization"), dict) and "metricsProviders" in policy:
        rules = outcome.files["overlays/here/recording-rules/kubevirt-policy-load-aware.yaml"]
        assert all(f"record: {record}\n" in rules for record in RECORDS.values())
    else:
        assert "overlays/here/recording-rules/kustomization.yaml" not in outcome.files
    gate = "--feature-gates=EvictionsInBackground=true"
    container = repository.loaded(outcome, "descheduler/deployment.yaml")["spec"]["template"]["spec"]["containers"][0]
    assert (gate in container["args"]) == (number >= 32)
    assert container["image"].startswith(f"registry.k8s.io/descheduler/descheduler:v{minor}.")
