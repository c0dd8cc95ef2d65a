"""What a fleet gains that has policies of every kind: rebalancing, soft taints and recording rules."""

from __future__ import annotations

VERSIONS = {
    'hyperconverged: "4.18"': 'deschedulerOperator: "5.1.5"',
    'hyperconverged: "1.15"': 'deschedulerOperator: "5.2.2"',
    'hyperconverged: "1.17"': 'deschedulerOperator: "5.3.3"',
    'kubevirt: "1.5.2"': 'descheduler: "0.34", prometheus: "2.55"',
    'hyperconverged: "1.18"': 'deschedulerOperator: "5.4.0"',
    'hyperconverged: "1.16"': 'descheduler: "0.33", prometheus: "3.5"',
    'kubevirt: "1.9"': 'descheduler: "0.36", prometheus: "3.9"',
    'hyperconverged: "1.19"': 'deschedulerOperator: "5.4.0"',
}
"""By the first version of a profile; a profile that is left out is too old to be rebalanced."""
OLD_METRIC = ("5.1.5", "5.2.2")
"""Operators that know the load of CPUs alone."""
KUBERNETES = '  monitoring: {url: "http://prometheus-operated.monitoring.svc:9090", ruleLabels: {release: main}}\n'

PRESSURE = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-psi
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  kernelArguments: [psi=1]
"""

POLICIES = """\
# yaml-language-server: $schema=../docs/schemas/RebalancePolicy.json
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: load-aware}
spec:
  clusters: {matchLabels: {rebalance: memory}}
  mode: Automatic
  manifests: [platform/pressure.yaml]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: tainted}
spec:
  clusters: {matchLabels: {rebalance: tainted}}
  mode: Automatic
  manifests: [platform/pressure.yaml]
  softTaint:
    mode: Enforce
    every: 5m
    staleAfter: 20m
    image: registry.example/softtaint@sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: processors}
spec:
  clusters: {matchLabels: {rebalance: cpu}}
  mode: Automatic
  utilization: CPUCombined
  evictions: {total: 5}
  manifests: [platform/pressure.yaml]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: watched}
spec:
  clusters:
    matchLabels: {env: lab}
    matchExpressions:
    - {key: rebalance, operator: Exists}
  priority: 10
  mode: Predictive
  thresholds: {static: Medium}
  utilization:
    query: |
      clamp(
        max by (instance) (team:node_load:ratio5m or team:node_busy:ratio5m),
        0, 1
      )
  evictions: {total: 5}
  manifests: [platform/pressure.yaml]
---
# yaml-language-server: $schema=../docs/schemas/RecordingRules.json
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RecordingRules
metadata: {name: catalogue}
spec:
  clusters:
    matchExpressions:
    - {key: env, operator: NotIn, values: [edge]}
  catalog: [rebalancing]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RecordingRules
metadata: {name: team}
spec:
  clusters: {matchLabels: {env: lab}}
  groups:
  - name: nodes
    interval: 30s
    rules:
    - record: team:node_load:ratio5m
      expr: |
        avg by (instance) (rate(node_cpu_seconds_total{mode!="idle"}[5m]))
    - record: team:node_busy:ratio5m
      expr: |
        1 - avg by (instance) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[5m]))
    - alert: NodeBusy
      expr: |
        team:node_busy:ratio5m > 0.95
        and on (instance) team:node_load:ratio5m > 0.95
      for: 15m
      labels: {severity: warning, team: platform}
      annotations:
        summary: "{{ $labels.instance }} is at {{ $value | humanizePercentage }}."
        description: "No machine starts well on {{ $labels.instance }}."
  - name: network
    interval: 1m
    rules:
    - record: team:node_network:rate5m
      expr: sum by (instance) (rate(node_network_receive_bytes_total{device!="lo"}[5m]))
"""


def versions(profile: str) -> str:
    """What the versions of a profile gain; nothing where it cannot be rebalanced."""
    return next((more for first, more in VERSIONS.items() if profile.startswith(first)), "")


def label(profile: str) -> dict[str, str]:
    """Which policy rebalances a cluster of the profile."""
    more = versions(profile)
    if not more:
        return {}
    if "descheduler:" in more:
        return {"rebalance": "tainted"}
    return {"rebalance": "cpu" if any(version in more for version in OLD_METRIC) else "memory"}
