"""Whatever a rebalance policy says, on whatever cluster: findings or files, never a crash, and the same every time."""

from __future__ import annotations

from typing import Any, get_args

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from renderer.kinds.rebalance_spec import Deviation, Metric, Profile, Static
from renderer.releases.descheduler import MINORS
from tests import repository
from tests.test_releases_rebalance import VERSIONS

words = st.sampled_from(["a", "machines", "kube-system", "openshift-cnv", "null", "on", "1"])
durations = st.sampled_from(["0s", "1s", "3m", "1h30m", "48h", "999999h"])
manifests = {
    "odd/scheduler.yaml": "apiVersion: config.openshift.io/v1\nkind: Scheduler\nspec: {profile: HighNodeUtilization}\n",
    "odd/hco.yaml": "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nspec: [1]\n",
    "odd/kubevirt.yaml": "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nspec: {configuration: {migrations: text}}\n",
    "odd/config.yaml": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {labels: 3}\n",
    "odd/kube.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: {a: b}\n",
    "odd/taints.yaml": "kind: [1]\nspec: {taints: [1, {key: [2]}, {key: null}], args: [[], --ignore-taint]}\n",
    "odd/karpenter.yaml": "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {ignore-taint: {a: b}, taints: {}}\n",
    "odd/text.yaml": "a text\n",
    "odd/broken.yaml": "{",
}

taints = st.fixed_dictionaries(
    {"mode": st.sampled_from(["Enforce", "DryRun", "RemoveOnly"]), "image": st.sampled_from(["a", "a:1", "A b"])},
    optional={
        "hysteresisPoints": st.integers(0, 100),
        "maxTaintedPercent": st.integers(0, 100),
        "missingSample": st.sampled_from(["Keep", "Remove"]),
        "staleAfter": durations,
        "every": durations,
        "runAs": st.sampled_from(["CronJob", "Deployment"]),
        "admission": st.sampled_from(["policy", "none"]),
    },
)
specs = st.fixed_dictionaries(
    {"mode": st.sampled_from(["Automatic", "Predictive"])},
    optional={
        "interval": durations,
        "profiles": st.lists(st.sampled_from(get_args(Profile)), min_size=1, max_size=4),
        "thresholds": st.fixed_dictionaries(
            {},
            optional={"deviation": st.sampled_from(get_args(Deviation)), "static": st.sampled_from(get_args(Static))},
        ),
        "utilization": st.sampled_from(get_args(Metric)) | st.fixed_dictionaries({"query": st.text(min_size=1)}),
        "evictions": st.fixed_dictionaries({}, optional={"perNode": st.integers(1, 9), "total": st.integers(1, 9)}),
        "namespaces": st.fixed_dictionaries(
            {}, optional={name: st.lists(words, min_size=1) for name in ("included", "excluded")}
        ),
        "priorityThreshold": st.fixed_dictionaries({}, optional={"className": words, "value": st.integers(-9, 9)}),
        "podLifetime": durations,
        "migrationCooldown": st.fixed_dictionaries({}, optional=dict.fromkeys(("base", "max", "window"), durations)),
        "pressureStall": st.fixed_dictionaries({"enable": st.booleans()}),
        "manifests": st.lists(st.sampled_from(["odd/*", "odd/**", "../x", "nothing", "odd/broken.yaml"])),
        "onRemoval": st.sampled_from(["Delete", "Keep"]),
        "softTaint": taints,
    },
)
deliveries = st.sampled_from(
    [{"engine": "argocd"}, {"engine": "none"}, *({"engine": "flux", "substitution": on} for on in ("on", "off"))]
)
openshift = st.fixed_dictionaries(
    {
        "platform": st.just("openshift"),
        "delivery": deliveries,
        "topology": st.sampled_from(["standard", "compact", "single-node", "hosted"]),
        "versions": st.fixed_dictionaries(
            {"hyperconverged": st.sampled_from(["1.8", "1.13", "1.15", "1.19"])},
            optional={
                "deschedulerOperator": st.sampled_from([*VERSIONS.values(), "6.0.0"]),
                "kubernetes": st.sampled_from(["1.29", "1.30", "2.0"]),
            },
        ),
    },
    optional={"crds": st.sampled_from(["odd", "nothing", "odd/text.yaml"])},
)
kubernetes = st.fixed_dictionaries(
    {
        "platform": st.just("kubernetes"),
        "delivery": deliveries,
        "versions": st.fixed_dictionaries(
            {"kubevirt": st.sampled_from(["0.58", "1.3", "1.9"])},
            optional={"descheduler": st.sampled_from([*MINORS, "0.27", "0.99", "0.35.0"]), "allowNewer": st.booleans()},
        ),
    },
    optional={
        "monitoring": st.fixed_dictionaries(
            {}, optional={"url": st.sampled_from(["http://a:9090", "https://a", "https://[::1]:1/b"])}
        )
    },
)


@settings(deadline=None, max_examples=200)
@given(specs, openshift | kubernetes)
def test_any_policy_on_any_cluster(spec: dict[str, Any], cluster: dict[str, Any]) -> None:
    documents = [repository.cluster(**cluster), repository.policy("RebalancePolicy", **spec)]
    outcome, again = (repository.render(documents, manifests) for _ in range(2))
    assert (outcome.files, outcome.findings) == (again.files, again.findings)
    if not outcome.failed:
        for text in outcome.files.values():
            assert yaml.safe_load(text)["kind"]
