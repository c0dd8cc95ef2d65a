"""`test`: promtool on the rules of every cluster, and on the unit tests that policies name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from renderer import catalog, documents, emit, promql, promtool
from renderer.catalog.unit_tests import unit_tests
from renderer.commands import options, testbed
from renderer.commands.errors import CannotRun
from renderer.kinds import rule_objects
from renderer.kinds.base import Site
from renderer.kinds.recording_rules import RecordingRules
from renderer.kinds.rule_objects import FOLDER
from renderer.kinds.rule_spec import Rule
from renderer.model import Finding, Origin, Position, Tree, TreeError
from renderer.pipeline import Rendered, Settings
from renderer.promtool import Ended
from renderer.releases import prometheus
from renderer.report import Report
from renderer.words import counted

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class _Job:
    """One run of promtool: the rules of some clusters that have them alike, with a file of tests or without.

    `test` is the path of that file, `at` where a policy names it; the catalogue's own tests come as `text`.
    """

    rules: tuple[tuple[str, str], ...]
    clusters: tuple[str, ...]
    policies: tuple[tuple[RecordingRules, Origin], ...]
    test: str = ""
    at: Origin | None = None
    text: str = ""

    @property
    def tested(self) -> bool:
        return bool(self.test or self.text)

    @property
    def title(self) -> str:
        return self.test or "the catalogue"


@click.command("test")
@click.option("--promtool", "program", metavar="PATH", help="The promtool to run; default: the one on PATH.")
@options.clusters
@options.shared
def command(given: options.Shared, program: str | None, clusters: tuple[str, ...]) -> int:
    """Run promtool on the rules of every cluster, the catalogue's unit tests, and those that policies name.

    The tests see the rules as they are rendered for a cluster; what they say under rule_files does not count.
    """
    repository = options.open_repository(given.root)
    outcome = repository.run(allow_empty=given.allow_empty, only=clusters)
    findings, summary = list(outcome.findings), "Nothing was tested: mend the errors first."
    if not outcome.failed:
        found = promtool.find(program, testbed.promtools())
        if found is None:
            missing = f"--promtool {program}: there is no such program."
            raise CannotRun(missing if program is not None else f"promtool is not there. {testbed.advice()}")
        _check(found)
        wanted = {name: one for name, one in outcome.rendered.items() if not clusters or name in clusters}
        jobs = list(_jobs(wanted))
        tests = {job.test: _read(repository.tree, job.test) for job in jobs if job.test}
        ended = _run_all(found, jobs, tests)
        failures = [list(_findings(job, one, repository.settings)) for job, one in zip(jobs, ended, strict=True)]
        findings += chain.from_iterable(failures)
        summary = _summary(jobs, len(list(filter(None, failures))))
    report = Report(findings=findings, line=options.Lines(repository.tree), brief=True, summary=summary)
    return options.publish(report, given)


def _check(program: Path) -> None:
    try:
        if not promtool.is_promtool(program):
            raise CannotRun(f"{program} is no promtool: asked for its version, it names another program or none.")
    except promtool.CannotStart as error:
        raise CannotRun(str(error)) from None


def _jobs(rendered: Mapping[str, Rendered]) -> Iterator[_Job]:
    """One for the rules of all clusters that have the same, and one more for each file of tests."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, one in rendered.items():
        if rules := tuple(_rule_files(one)):
            alike.setdefault(rules, []).append(name)
    for rules, names in alike.items():
        policies = {
            policy.origin: policy.value
            for name in names
            for policy in rendered[name].policies
            if isinstance(policy.value, RecordingRules)
        }
        found = tuple((value, origin) for origin, value in policies.items())
        yield _Job(rules, tuple(names), found)
        if text := _catalogue(rules, rendered[names[0]].site):
            yield _Job(rules, tuple(names), found, text=text)
        for policy, origin in found:
            for index, path in enumerate(policy.spec.tests):
                yield _Job(rules, tuple(names), found, path, origin.below("spec", "tests", index))


def _rule_files(rendered: Rendered) -> Iterator[tuple[str, str]]:
    """The rule files of an overlay, by name, as its objects hold them."""
    for path, text in sorted(rendered.overlay.files.items()):
        folder, _, name = path.partition("/")
        if folder == FOLDER and name != "kustomization.yaml":
            body = documents.read_foreign(path, text.encode()).documents[0].data
            yield name, "".join(body["data"].values()) if "data" in body else emit.yaml(body["spec"])


def _catalogue(rules: Iterable[tuple[str, str]], site: Site | None) -> str:
    """The unit tests of the groups of the catalogue that are among the rules; empty where none is."""
    files = {name for name, _ in rules}
    groups = [name for name in catalog.CATALOG if f"kubevirt-policy-{name}.yaml" in files]
    return json.dumps(unit_tests(groups, rule_objects.source(site))) if groups and site is not None else ""


def _read(tree: Tree, path: str) -> str:
    try:
        return tree.read(path).decode("utf-8", "replace")
    except TreeError as error:
        raise CannotRun(f"{path}: {error}") from None


def _run_all(program: Path, jobs: Sequence[_Job], tests: Mapping[str, str]) -> list[Ended]:
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda job: _run(program, job, tests), jobs))
    except promtool.CannotStart as error:
        raise CannotRun(str(error)) from None


def _run(program: Path, job: _Job, tests: Mapping[str, str]) -> Ended:
    flags = sorted(_flags(job))
    with TemporaryDirectory(prefix="kubevirt-policy-") as folder:
        names = []
        for name, text in job.rules:
            Path(folder, name).write_text(text, encoding="utf-8")
            names.append(name)
        if not job.tested:
            checked = [promtool.check_rules(program, Path(folder, name), flags) for name in names]
            return Ended(any(one.failed for one in checked), tuple(line for one in checked for line in one.lines))
        path = Path(folder, "unit-tests.yml")
        try:
            path.write_text(promtool.with_rules(job.text or tests[job.test], names), encoding="utf-8")
        except ValueError as error:
            return Ended(True, unread=str(error))
        return promtool.test_rules(program, path, flags)


def _findings(job: _Job, ended: Ended, settings: Settings) -> Iterator[Finding]:
    """One for each rule, or set of rules, that promtool names; where it names none, one at the tests."""
    code = "rules/test-failed"
    if ended.unread:
        message = f"the unit tests of {job.title} cannot be run: {ended.unread}"
        yield Finding(code, settings.weight(code), _tests(job), message, "Correct that file.", job.clusters)
        return
    about: dict[tuple[Position, ...], tuple[list[str], list[str]]] = {}
    failures = promtool.failures(ended.lines) if ended.failed else []
    for said in failures:
        # Rules that do not load are told without tests already.
        if said.rule is None or not job.tested:
            rules = list(_concerned(job, said))
            places = tuple(_place(rule, place, said) for rule, place in rules)
            about.setdefault(places, ([rule.name for rule, _ in rules], []))[1].extend(said.lines)
    if ended.failed and not failures:
        about[()] = [], list(ended.lines)
    for places, (names, lines) in about.items():
        which = f", on {', '.join(dict.fromkeys(names))}" if names else ""
        what = f"the unit tests of {job.title} fail{which}" if job.tested else f"promtool refuses the rules{which}"
        help = "\n".join(["Correct the rule or the test. promtool says:", *_excerpt(lines)])
        yield Finding(code, settings.weight(code), places[0] if places else _tests(job), what, help, job.clusters)


def _tests(job: _Job) -> Position:
    """Where a policy names the tests; else the first policy that brings rules."""
    if job.at is not None:
        return job.at.position
    return Position(job.policies[0][1].position.file if job.policies else ".")


def _concerned(job: _Job, said: promtool.Said) -> Iterator[tuple[Rule, Origin]]:
    """The own rules that a failure is about: by group and number, by name, or because a test reads them."""
    read = promql.parse(said.expr).metrics if said.expr else frozenset()
    for policy, origin in job.policies:
        for group, rule, place in policy.rules(origin):
            if (
                said.rule == (policy.group_name(group), group.rules.index(rule) + 1)
                or (said.alert and rule.alert == said.alert)
                or rule.record in read
            ):
                yield rule, place


def _flags(job: _Job) -> set[str]:
    """The feature flags without which promtool refuses the rules, as Prometheus would; which is told by `check`."""
    found = [promql.parse(rule.expr) for policy, origin in job.policies for _, rule, _ in policy.rules(origin)]
    names = {call.name for one in found for call in one.calls} | {one.name for each in found for one in each.features}
    return {flag for name in names if (flag := prometheus.flag(name, None))}


def _place(rule: Rule, place: Origin, said: promtool.Said) -> Position:
    """The label or annotation that is wrong, or the first line of the expression, also of one in a block scalar."""
    if said.text is not None and said.text[1] in getattr(rule, said.text[0]):
        return place.below(*said.text).position
    return documents.within(place.below("expr"), 0, len(rule.expr.partition("\n")[0])).position


def _excerpt(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"   {line[:300]}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"   … and {len(lines) - _SHOWN} more lines"


def _summary(jobs: Sequence[_Job], failures: int) -> str:
    tests = len({job.test for job in jobs if job.test})
    if not jobs:
        return "No policy brings rules."
    words = f"{counted(tests, 'file')} of unit tests"
    words += " and the catalogue's own" if any(job.text for job in jobs) else ""
    clusters = len({name for job in jobs for name in job.clusters})
    outcome = f"{failures} failed" if failures else "all passed"
    return f"Tested the rules of {counted(clusters, 'cluster')} with {words}: {outcome}."
