"""What the API server itself says of `KubeDescheduler` objects, with the definition of each release and its CEL rules.

What we say that it refuses, it refuses; what we render, it takes; and what only the operator finds out, it takes as
well, which is why it has to be an error here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import msgspec
import pytest

from renderer.kinds.kube_descheduler import body as rendered_body
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Finding
from renderer.releases import descheduler_operator as operator
from renderer.releases.descheduler_operator import TABLE, Schema
from renderer.releases.operator_metrics import METRICS
from tests import repository
from tests.facts import facts
from tests.testbed.access import Access, Refused
from tests.testbed.definitions import definitions
from tests.testbed.fixtures import SERVERS

pytestmark = SERVERS

CSV = {
    "4.12": "4.12.2", "4.13": "4.13.0", "4.14": "4.14.0", "4.15": "5.0.1", "4.16": "5.0.1", "4.17": "5.1.1",
    "4.18": "5.1.5", "4.19": "5.2.2", "4.20": "5.3.1", "4.21": "5.3.3", "4.22": "5.4.0", "4.23": "5.4.0",
}  # fmt: skip
"""By schema; of 4.16 and 4.23 only the cluster's own definition tells."""
WITH_RULES = [name for name, schema in TABLE.items() if schema.rules]
PROFILES = [
    "AffinityAndTaints", "CompactAndScale", "EvictPodsWithLocalStorage", "EvictPodsWithPVC",
    "KubeVirtRelieveAndMigrate", "LifecycleAndUtilization", "LongLifecycle", "SoftTopologyAndDuplicates",
    "TopologyAndDuplicates",
]  # fmt: skip
RELIEVE = ["KubeVirtRelieveAndMigrate"]
REFUSED = "refuses the object"
FOUND_BY_THE_OPERATOR = {"rebalance/exclusive-fields", "rebalance/ignored", "rebalance/protected-namespace"}

Spec = dict[str, Any]

SPECS: list[Spec] = [
    *({"profiles": [name]} for name in PROFILES),
    *({"profiles": list(pair)} for pair in combinations_with_replacement(PROFILES, 2)),
    *({"utilization": metric} for metric in METRICS),
    *({"profiles": ["LongLifecycle"], "utilization": metric} for metric in METRICS),
    {"utilization": {"query": 'clamp(node_load1 / 64, 0, 1) and on (instance) up{job="node"} == 1'}},
    *({"thresholds": {"static": level}} for level in ("Low", "Medium", "High")),
    *(
        {"thresholds": {"deviation": f"{form}{level}"}}
        for form in ("", "Asymmetric")
        for level in ("Low", "Medium", "High")
    ),
    {"thresholds": {"deviation": "Low", "static": "Low"}},
    {"evictions": {"total": 3}},
    {"evictions": {"perNode": 1, "total": 1}},
    {"mode": "Predictive", "interval": "1s"},
    {"interval": "9999h"},
    {"namespaces": {"excluded": ["kube-system", "databases"]}},
    {"namespaces": {"included": ["machines"]}, "profiles": ["AffinityAndTaints"]},
    {"namespaces": {"included": ["openshift-cnv"]}, "profiles": ["AffinityAndTaints"]},
    {"namespaces": {"included": ["machines"], "excluded": ["databases"]}, "profiles": ["AffinityAndTaints"]},
    {"priorityThreshold": {"className": "system-node-critical"}},
    {"priorityThreshold": {"value": -5}},
    {"priorityThreshold": {"value": 5, "className": "high"}},
    {"podLifetime": "1h30m", "profiles": ["LifecycleAndUtilization"]},
    {"migrationCooldown": {}},
    {"migrationCooldown": {"base": "30m", "max": "12h", "window": "96h"}},
]


def findings(wanted: Spec, schema: str) -> list[Finding]:
    """The errors of a policy on a cluster with that operator."""
    versions = {"hyperconverged": "1.17", "deschedulerOperator": CSV[schema]}
    files, more = {}, {}
    if schema in ("4.16", "4.23"):
        files, more = {"crds/it.yaml": definition(schema)}, {"crds": "crds"}
    here = repository.cluster(versions=versions, **more)
    outcome = repository.render([here, repository.policy("RebalancePolicy", **wanted)], files)
    return [finding for finding in outcome.findings if finding.severity == "error"]


def definition(schema: str) -> str:
    return facts(f"crds/kubedescheduler-{schema}.yaml").read_text()


def stated(wanted: Spec) -> Spec:
    return {"mode": "Automatic", **wanted}


def wish(wanted: Spec, schema: Schema) -> dict[str, Any]:
    """The object with everything that the policy asks for, whether or not the release has the fields."""
    limits = {"total": "total", "perNode": "node"}
    asked = {limits[name] for name in wanted.get("evictions", {})} | schema.limits
    open_to_all = replace(schema, customizations=_asked(wanted, schema), limits=frozenset(asked))
    found = rendered_body(msgspec.convert({"clusters": {}, **stated(wanted)}, RebalanceSpec), [open_to_all], {})
    thresholds = wanted.get("thresholds", {})
    custom = found["spec"].setdefault("profileCustomizations", {})
    if len(thresholds) == 2:
        custom |= {"devLowNodeUtilizationThresholds": thresholds["static"]}
    if len(namespaces := wanted.get("namespaces", {})) == 2:
        custom["namespaces"] = namespaces
    if not custom:
        del found["spec"]["profileCustomizations"]
    return found


def _asked(wanted: Spec, schema: Schema) -> frozenset[str]:
    fields = {
        "utilization": {"devActualUtilizationProfile"},
        "thresholds": {"devDeviationThresholds", "devLowNodeUtilizationThresholds"},
        "migrationCooldown": {"devMigrationCooldown", "devMaxMigrationCooldown", "devMigrationHistoryWindow"},
    }
    return schema.customizations.union(*(names for name, names in fields.items() if name in wanted))


@contextmanager
def serving(access: Access, schema: str) -> Iterator[None]:
    if not access.exists(f"/api/v1/namespaces/{operator.NAMESPACE}"):
        access.create_at("/api/v1/namespaces", {"metadata": {"name": operator.NAMESPACE}})
    with definitions(access, [f"kubedescheduler-{schema}"]):
        yield


def refusal(access: Access, body: dict[str, Any]) -> str:
    """Why a server-side apply would be refused; empty where the object is taken."""
    path = (
        f"/apis/{operator.API_VERSION}/namespaces/{operator.NAMESPACE}/kubedeschedulers/{body['metadata']['name']}"
        "?dryRun=All&fieldManager=argocd-controller&force=true"
    )
    try:
        access.send("PATCH", path, body, "application/apply-patch+yaml")
    except Refused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("schema", TABLE)
def test_the_api_server_agrees(apiserver: Access, schema: str) -> None:
    """In bulk: for each policy, what we say of it and what the API server says of the object."""
    release, wrong, seen = TABLE[schema], [], Counter[str]()
    operators = FOUND_BY_THE_OPERATOR | (set() if release.rules else {"rebalance/exclusive-profiles"})
    with serving(apiserver, schema):
        for wanted in SPECS:
            errors = findings(stated(wanted), schema)
            answer = refusal(apiserver, wish(wanted, release))
            if any(REFUSED in error.message for error in errors):
                seen["refused"] += 1
                wrong += [] if answer else [(wanted, "we say that it is refused, and it is taken")]
            elif {error.code for error in errors} <= operators:
                seen["for the operator" if errors else "taken"] += 1
                wrong += [(wanted, answer)] if answer else []
    assert wrong == []
    assert min(seen["taken"], seen["refused"], seen["for the operator"]) >= 2, seen


@pytest.mark.parametrize("schema", WITH_RULES)
def test_every_rule_of_the_definition_is_one_of_ours(apiserver: Access, schema: str) -> None:
    """Each pair of the operator's own words, in both orders; the same pairs are exclusive to us and to the rules."""
    words = sorted(TABLE[schema].profiles)
    neutral = {"DevKubeVirtRelieveAndMigrate": RELIEVE[0], "DevPreviewLongLifecycle": "LongLifecycle"}
    ours = {frozenset(pair) for pair in operator.EXCLUSIVE}
    base = wish({"profiles": ["AffinityAndTaints"]}, TABLE[schema])
    with serving(apiserver, schema):
        for one, other in combinations_with_replacement(words, 2):
            names = {neutral.get(one, one), neutral.get(other, other)}
            # No rule knows DevPreviewLongLifecycle beside LongLifecycle; we never write the former.
            exclusive = one == other or names in ours or names == {RELIEVE[0]}
            for profiles in ([one, other], [other, one]):
                answer = refusal(apiserver, {**base, "spec": {**base["spec"], "profiles": profiles}})
                assert bool(answer) is exclusive, (profiles, answer)


@pytest.mark.parametrize("schema", WITH_RULES)
def test_other_limits_of_the_definition(apiserver: Access, schema: str) -> None:
    """What no policy can come to: another name, an interval below a second, other words, unknown fields."""
    base = wish({}, TABLE[schema])
    custom = base["spec"]["profileCustomizations"]
    changes: dict[str, dict[str, Any]] = {
        "must be 'cluster'": {"metadata": {**base["metadata"], "name": "other"}},
        "greater than or equal to 1": {"spec": {**base["spec"], "deschedulingIntervalSeconds": 0}},
        "Unsupported value": {"spec": {**base["spec"], "mode": "automatic"}},
        "field not declared in schema": {
            "spec": {**base["spec"], "profileCustomizations": {**custom, "devTaint": True}}
        },
    }
    with serving(apiserver, schema):
        assert refusal(apiserver, base) == ""
        for reason, change in changes.items():
            assert reason in refusal(apiserver, {**base, **change})
