"""`RecordingRules`: groups of the catalogue, and own recording rules and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from renderer.kinds.base import ApiVersion, Metadata, Policy, PolicySpec, Request, Site, check_path
from renderer.kinds.fields import RepoPath, leaves_repository
from renderer.kinds.rule_spec import Group, Rule
from renderer.model import Body, Origin, Problem, Tree, TreeError

CatalogName: TypeAlias = Literal["load-aware", "rate-limits", "rebalancing"]


class RecordingRulesSpec(PolicySpec, frozen=True, kw_only=True):
    """At least one of catalog and groups."""

    catalog: Annotated[list[CatalogName], Meta(description="Groups that come with this tool.")] = []
    groups: Annotated[list[Group], Meta(description="Own groups, as in Prometheus.")] = []
    tests: Annotated[
        list[RepoPath], Meta(description="Unit tests for promtool, from the repository root: `kubevirt-policy test`.")
    ] = []


class RecordingRules(Policy, frozen=True, kw_only=True):
    """Recording rules and alerts; all policies that select a cluster apply to it."""

    api_version: ApiVersion
    kind: Literal["RecordingRules"]
    metadata: Metadata
    spec: RecordingRulesSpec

    exclusive = False
    guarded = False

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        # Late, here and below: the PromQL parser is for fleets that have rules.
        from renderer.kinds import rule_findings

        at = origin.below("spec")
        if not self.spec.catalog and not self.spec.groups:
            help = "Name a group of the catalogue, or write one of your own."
            yield Problem("policy/missing-key", at, "neither catalog nor groups says what to record", help)
        yield from _check_groups(self.spec.groups, at.below("groups"))
        for group, rule, place in self.rules(origin):
            del group
            yield from rule_findings.check(rule, place)
        for index, path in enumerate(self.spec.tests):
            yield from _check_test(path, at.below("tests", index), tree)

    def apply(self, origin: Origin, site: Site) -> Iterator[Request]:
        from renderer.kinds import rule_findings, rule_objects

        policy = f"RecordingRules/{self.metadata.name}"
        yield from rule_objects.requests(groups=self.spec.catalog, site=site, policy=policy)
        for group, rule, place in self.rules(origin):
            yield from rule_findings.judge(rule, group.interval, place, site)
        yield from rule_objects.judge_scrapes(site)
        if self.spec.groups:
            yield from rule_objects.judge(site)
            groups = [self._group(group) for group in self.spec.groups]
            name = f"kubevirt-policy-rules-{self.metadata.name}"
            yield rule_objects.manifest(name, groups, site=site, policy=policy)

    def rules(self, origin: Origin) -> Iterator[tuple[Group, Rule, Origin]]:
        """Every own rule with its group and its place."""
        for number, group in enumerate(self.spec.groups):
            for index, rule in enumerate(group.rules):
                yield group, rule, origin.below("spec", "groups", number, "rules", index)

    def group_name(self, group: Group) -> str:
        """The name under which a group is rendered."""
        return f"{self.metadata.name}.{group.name}"

    def _group(self, group: Group) -> Body:
        body: Body = {"name": self.group_name(group), "rules": [rule.body for rule in group.rules]}
        return body | ({"interval": group.interval} if group.interval else {})


def _check_groups(groups: list[Group], at: Origin) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, group in enumerate(groups):
        if group.name in first:
            message = f"group {group.name} stands twice: the Prometheus that loads it would end"
            help = f"Rename one of them, or join them with the group in line {_line(at.below(first[group.name]))}."
            yield Problem("rules/duplicate-group", at.below(index, "name"), message, help)
        first.setdefault(group.name, index)


def _line(origin: Origin) -> int:
    return origin.below("name").position.line


def _check_test(path: str, at: Origin, tree: Tree) -> Iterator[Problem]:
    if leaves_repository(path):
        yield from check_path(path, at)
        return
    try:
        tree.read(path)
    except TreeError as error:
        help = "Correct the path, from the repository root, or commit the file."
        yield Problem("rules/test-missing", at, f"{path} cannot be read: {error}", help)
