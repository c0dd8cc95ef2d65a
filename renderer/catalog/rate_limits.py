"""`rate-limits`: how long KubeVirt's clients hold back their own calls, and how pressed the API server is."""

from __future__ import annotations

from renderer.catalog.model import Group, Rule, Source, alert

THROTTLING = "kubevirt_policy:client_throttling:seconds"
WORST = "kubevirt_policy:client_throttling_worst_pod:seconds"
TOLERATED = 0.1
"""Seconds that a call may wait on average before somebody hears of it; client-go itself logs from 0.05
(kubevirt/kubevirt vendor client-go/rest/request.go:57)."""

_PODS = "virt-(?:api|controller|handler|operator)-.*"
_COMPONENT = "(virt-(?:api|controller|handler|operator))-.*"
_SEATS = 'priority_level="workload-low"'
_MUTATING = 'verb=~"POST|PUT|PATCH|DELETE|APPLY", subresource!~"proxy|exec|attach|portforward|log"'


def group(source: Source) -> Group:
    """The records, and the alert on throttled clients."""
    window = source.slow_window
    return Group("kubevirt-policy.rate-limits", "1m", [*_clients(window), *_server(window), _throttled()])


def _clients(window: str) -> list[Rule]:
    """By component.  A mean and no quantile: the histogram ends at 0.512 s, where all that matters would be cut off
    (kubevirt/kubevirt pkg/monitoring/metrics/common/client/rest_metrics.go:27)."""
    waited = _counter("rest_client_rate_limiter_duration_seconds_sum", window)
    calls = _counter("rest_client_rate_limiter_duration_seconds_count", window)
    return [
        Rule(_mean("component", waited, calls), record=THROTTLING),
        Rule(f"max by (component) (\n{_mean('component, pod', waited, calls)}\n)", record=WORST),
        Rule(
            f"sum by (component) (\n{_counter('rest_client_requests_total', window)}\n)",
            record="kubevirt_policy:client_requests:rate",
        ),
    ]


def _counter(name: str, window: str) -> str:
    """The rate of a counter by component; older releases of KubeVirt name it without a prefix."""
    return f"""\
  label_replace(
    rate(kubevirt_{name}{{pod=~"{_PODS}"}}[{window}])
    or
    rate({name}{{pod=~"{_PODS}"}}[{window}]),
    "component", "$1", "pod", "{_COMPONENT}"
  )"""


def _mean(labels: str, waited: str, calls: str) -> str:
    return f"sum by ({labels}) (\n{waited}\n)\n/\n(\nsum by ({labels}) (\n{calls}\n) > 0\n)"


def _server(window: str) -> list[Rule]:
    latency = f"sum by (le) (rate(apiserver_request_duration_seconds_bucket{{{_MUTATING}}}[{window}]))"
    seats = f"""\
max(
  sum by (instance, priority_level) (apiserver_flowcontrol_current_executing_seats{{{_SEATS}}})
  / on (instance, priority_level)
  (max by (instance, priority_level) (apiserver_flowcontrol_nominal_limit_seats{{{_SEATS}}}) > 0)
)"""
    return [
        Rule(
            f"sum(rate(apiserver_flowcontrol_rejected_requests_total[{window}]))",
            record="kubevirt_policy:apiserver_rejected_requests:rate",
        ),
        Rule(f"histogram_quantile(0.99,\n  {latency}\n) >= 0", record="kubevirt_policy:apiserver_mutating_latency:p99"),
        Rule(seats, record="kubevirt_policy:apiserver_workload_seats:ratio"),
    ]


def _throttled() -> Rule:
    return alert(
        "KubeVirtPolicyClientsThrottled",
        f"{THROTTLING} > {TOLERATED}",
        wait="15m",
        summary="{{ $labels.component }} holds back its own API calls.",
        description=(
            "Each API call of {{ $labels.component }} waits {{ $value | humanizeDuration }} on average for the "
            "client's own rate limiter: starts, stops and migrations of virtual machines are late by that much "
            "for every call. A RateLimitPolicy with a higher limit helps, as long as the API server has room."
        ),
    )
