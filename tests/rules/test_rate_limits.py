"""`rate-limits` and its alert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from renderer import catalog
from tests.rules.promtool import case, nothing, rule_file, run, samples

WAITED = "rest_client_rate_limiter_duration_seconds_sum"
CALLS = "rest_client_rate_limiter_duration_seconds_count"


def client(prefix: str, pod: str, waited: float, calls: float) -> dict[str, str]:
    """A pod that makes `calls` a second and waits `waited` seconds for each, by two verbs alike."""
    out = {}
    for verb in ("GET", "PUT"):
        labels = f'{{namespace="kubevirt",pod="{pod}",verb="{verb}",url="https://10.0.0.1/%7Bprefix%7D"}}'
        out[f"{prefix}{WAITED}{labels}"] = f"0+{waited * calls * 30:g}x120"
        out[f"{prefix}{CALLS}{labels}"] = f"0+{calls * 30:g}x120"
        out[f"{prefix}rest_client_requests_total{labels}"] = f"0+{calls * 30:g}x120"
    return out


FLEET = {
    **client("kubevirt_", "virt-controller-5c7d-abcde", 0.2, 10),
    **client("kubevirt_", "virt-handler-aaaaa", 0.0, 3),
    **client("kubevirt_", "virt-handler-bbbbb", 0.06, 1),
    **client("", "virt-api-77f-xyz", 0.01, 5),
    **client("", "kube-controller-manager-0", 9.0, 5),
}


def alert(component: str, value: str) -> dict[str, Any]:
    rule = next(rule for rule in catalog.groups(["rate-limits"], catalog.Source())["rate-limits"].rules if rule.alert)
    words = {
        key: text.replace("{{ $labels.component }}", component).replace("{{ $value | humanizeDuration }}", value)
        for key, text in rule.annotations.items()
    }
    return {"exp_labels": {"severity": "warning", "component": component}, "exp_annotations": words}


def test_clients(tmp_path: Path, promtool: Path) -> None:
    """Means by component, old names and new, and nobody else's clients."""
    found = [
        samples(
            "kubevirt_policy:client_throttling:seconds",
            {"virt-controller": 0.2, "virt-handler": 0.015, "virt-api": 0.01},
            "component",
        ),
        samples(
            "kubevirt_policy:client_throttling_worst_pod:seconds",
            {"virt-controller": 0.2, "virt-handler": 0.06, "virt-api": 0.01},
            "component",
        ),
        samples(
            "kubevirt_policy:client_requests:rate",
            {"virt-controller": 20, "virt-handler": 8, "virt-api": 10},
            "component",
        ),
    ]
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), [case(FLEET, found)]) == ""


def test_a_client_that_is_idle_has_no_mean(tmp_path: Path, promtool: Path) -> None:
    idle = client("kubevirt_", "virt-api-77f-xyz", 0, 0)
    found = [nothing("kubevirt_policy:client_throttling:seconds")]
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), [case(idle, found)]) == ""


def test_old_and_new_names_at_once(tmp_path: Path, promtool: Path) -> None:
    """A release that gave both out would not be counted twice."""
    both = {**client("", "virt-api-77f-xyz", 0.2, 5), **client("kubevirt_", "virt-api-77f-xyz", 0.2, 5)}
    found = [samples("kubevirt_policy:client_requests:rate", {"virt-api": 10}, "component")]
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), [case(both, found)]) == ""


def test_throttled(tmp_path: Path, promtool: Path) -> None:
    """Above a tenth of a second for a quarter of an hour, by the component that waits."""
    name = "KubeVirtPolicyClientsThrottled"
    told: list[dict[str, Any]] = [
        {"eval_time": "10m", "alertname": name, "exp_alerts": []},
        {"eval_time": "25m", "alertname": name, "exp_alerts": [alert("virt-controller", "200ms")]},
    ]
    calm = client("kubevirt_", "virt-controller-5c7d-abcde", 0.09, 10)
    silent: list[dict[str, Any]] = [{"eval_time": "40m", "alertname": name, "exp_alerts": []}]
    tests = [case(FLEET, alerts=told), case(calm, alerts=silent)]
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), tests) == ""


SERVER = {
    'apiserver_flowcontrol_rejected_requests_total{instance="x",priority_level="workload-low",reason="queue-full"}': (
        "0+60x120"
    ),
    'apiserver_flowcontrol_rejected_requests_total{instance="y",priority_level="catch-all",reason="time-out"}': (
        "0+30x120"
    ),
    'apiserver_flowcontrol_current_executing_seats{instance="x",priority_level="workload-low",flow_schema="a"}': (
        "40+0x120"
    ),
    'apiserver_flowcontrol_current_executing_seats{instance="x",priority_level="workload-low",flow_schema="b"}': (
        "60+0x120"
    ),
    'apiserver_flowcontrol_nominal_limit_seats{instance="x",priority_level="workload-low"}': "200+0x120",
    'apiserver_request_duration_seconds_bucket{verb="PUT",subresource="",le="0.1"}': "0+300x120",
    'apiserver_request_duration_seconds_bucket{verb="PUT",subresource="",le="1"}': "0+300x120",
    'apiserver_request_duration_seconds_bucket{verb="PUT",subresource="",le="+Inf"}': "0+300x120",
    'apiserver_request_duration_seconds_bucket{verb="GET",subresource="",le="+Inf"}': "0+3000x120",
}


def test_server(tmp_path: Path, promtool: Path) -> None:
    def one(record: str, value: float) -> dict[str, Any]:
        return {"expr": record, "eval_time": "10m", "exp_samples": [{"labels": record, "value": value}]}

    found = [
        one("kubevirt_policy:apiserver_rejected_requests:rate", 3),
        one("kubevirt_policy:apiserver_workload_seats:ratio", 0.5),
        one("kubevirt_policy:apiserver_mutating_latency:p99", 0.099),
    ]
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), [case(SERVER, found)]) == ""
    quiet = [nothing("kubevirt_policy:apiserver_mutating_latency:p99")]
    still = dict.fromkeys(SERVER, "7+0x120")
    assert run(promtool, rule_file(tmp_path, "name", ["rate-limits"]), [case(still, quiet)]) == ""
