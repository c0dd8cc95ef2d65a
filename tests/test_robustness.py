"""What holds for any input: findings instead of crashes, the same bytes everywhere, nothing outside overlays/."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml as yaml_1_1
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from renderer import emit, header, pipeline
from renderer.findings import SEVERITIES
from renderer.header import Ownership
from renderer.model import Severity
from renderer.pipeline import Outcome, Settings
from renderer.tree import DiskTree, compare, write
from tests.repository import CLUSTER_FILE
from tests.scenario import PROGRAM, read_tree

ROOT = Path(__file__).parents[1]
SECONDS = 60
FUZZ = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
CLUSTER = CLUSTER_FILE.replace("{name: prod-east}", "{name: prod-east, labels: {env: prod}}")
POLICY = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: ExpansionPolicy
metadata: {name: keep-references}
spec:
  clusters: {}
  referencePolicy: reference
"""


@contextmanager
def repository(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A real folder with these files, for tests that need many of them."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        put(root, files)
        yield root


def put(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir(exist_ok=True)
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@cache
def fleet() -> Mapping[str, bytes]:
    """The example fleet: its policies, and what they point to."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for folder in ("policies", "platform")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file()
    }


def render(root: Path) -> Outcome:
    """Runs the pipeline, and holds every finding to its form."""
    outcome = pipeline.run(DiskTree(root), Settings())
    for finding in outcome.findings:
        assert finding.code in SEVERITIES
        assert finding.message
        assert finding.position.line >= 1
        assert finding.position.column >= 1
        assert finding.position.length >= 1
    return outcome


def program(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The whole program, which must end in time and never by a bug."""
    env = {**os.environ, "NO_COLOR": "1", **environment}
    command = [*PROGRAM, *arguments]
    ended = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert ended.returncode in (0, 1, 2), ended.stderr
    return ended


def outside(root: Path) -> dict[str, object]:
    return {path: content for path, content in read_tree(root).items() if not path.startswith("overlays/")}


# Any bytes


WORDS = st.sampled_from(
    [*"{}[]:,-?&*!|>%@`'\"#~\\", "- ", ": ", "\n", "\n  ", "\n    ", "\t", "---\n", "...\n", "&a ", "*a", "<<: ",
    "!!str ", "!x ",
    "apiVersion: kubevirt-policy.dev/v1alpha1\n", "kind: RateLimitPolicy\n", "kind: Cluster\n", "metadata: {name: a}\n",
    "spec:\n", "  clusters: {}\n", "  static: ", "qps", "0x1F", "1e3", ".nan", "-.inf", "null", "yes", "0",
    "\ufeff", "\u00a0", "\x00",
    "\u2028", "\x85", "\U0001f600", '"\\ud800"', '"\\x00"', "# kubevirt-policy: ignore[select/tie] x\n", "9" * 400]
)  # fmt: skip
YAMLISH = st.lists(WORDS, max_size=40).map(lambda words: "".join(words).encode())


@FUZZ
@given(data=st.one_of(st.binary(max_size=300), YAMLISH))
def test_any_bytes_give_findings(data: bytes) -> None:
    with repository({"policies/cluster.yaml": CLUSTER.encode(), "policies/any.yaml": data}) as root:
        render(root)


@FUZZ
@given(data=st.one_of(st.binary(max_size=300), YAMLISH))
def test_any_bytes_behind_a_good_policy_give_findings(data: bytes) -> None:
    """The rest of a file, so that what is read has marks and a schema."""
    with repository({"policies/any.yaml": CLUSTER.encode() + b"---\n" + POLICY.encode() + data}) as root:
        render(root)


class Mutation:
    """Changes bytes, lines or scalars of one file; reproducible by its seed."""

    ODD = (
        b"",
        b"~",
        b"[]",
        b"{}",
        b"-1",
        b"0",
        b"1.5",
        b'"1.14"',
        b"true",
        b"yes",
        b"&a [*a]",
        b"!!x y",
        b'"\\ud800"',
        b"\xff",
    )

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def __call__(self, data: bytes) -> bytes:
        for _ in range(self.random.randint(1, 4)):
            data = self.random.choice((self._byte, self._line, self._value, self._swap))(data)
        return data

    def _byte(self, data: bytes) -> bytes:
        at = self.random.randrange(len(data) + 1)
        return data[:at] + bytes([self.random.randrange(256)]) + data[at + self.random.randint(0, 3) :]

    def _line(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        at = self.random.randrange(len(lines))
        lines[at : at + 1] = self.random.choice(([], [lines[at]] * 2, [b"  " + lines[at]], [lines[at].lstrip()]))
        return b"\n".join(lines)

    def _value(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        at = self.random.randrange(len(lines))
        key, colon, _ = lines[at].partition(b": ")
        lines[at] = key + colon + self.random.choice(self.ODD)
        return b"\n".join(lines)

    def _swap(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        one, other = self.random.randrange(len(lines)), self.random.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
        return b"\n".join(lines)


@FUZZ
@given(seed=st.integers(0, 2**32))
def test_mutated_fleet_gives_findings(seed: int) -> None:
    mutate = Mutation(seed)
    name = mutate.random.choice(sorted(fleet()))
    with repository({**fleet(), name: mutate(fleet()[name])}) as root:
        before = outside(root)
        outcome = render(root)
        if not outcome.failed:
            write(root, "overlays", outcome.files)
        assert outside(root) == before


@pytest.mark.parametrize("seed", range(6))
def test_whole_program_on_mutated_fleet(tmp_path: Path, seed: int) -> None:
    mutate = Mutation(seed)
    put(tmp_path, {name: mutate(data) if mutate.random.random() < 0.3 else data for name, data in fleet().items()})
    before = outside(tmp_path)
    ended = program(tmp_path, "render", "--output-format", "json")
    assert outside(tmp_path) == before
    if ended.stdout:
        assert json.loads(ended.stdout)["summary"]["errors"] == 0 or not (tmp_path / "overlays").exists()
    program(tmp_path, "check")


# Explicit nasty input


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [" + ", ".join("x" * width) + "]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


RATES = "apiVersion: kubevirt-policy.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: a}\nspec:\n  clusters: "
NASTY = {
    "brackets": "[" * 100_000,
    "brackets as a value": "kind: " + "[" * 100_000 + "]" * 100_000,
    "braces": "{a: " * 100_000,
    "brackets over documents": ("[" * 400 + "\n---\n") * 300,
    "brackets and what looks like documents": '"' + ("[" * 400 + "\n ---\n") * 300 + '"',
    "dashes": "- " * 200_000,
    "question marks": "? " * 200_000,
    "keys deeper and deeper": "".join(" " * n + "a:\n" for n in range(800)),
    "alias bomb": bomb(12, 10),
    "anchor inside itself": "kind: &a [*a]\n",
    "mapping inside itself": "kind: Cluster\nspec: &a {spec: *a}\n",
    "ten megabytes": "a: b\n" * 2_000_000,
    "one long line": "a: " + "x" * 1_000_000,
    "many documents": "---\na: 1\n" * 20_000,
    "many anchors": "a:\n" + "".join(f"- &a{n} 1\n" for n in range(15_000)),
    "NUL": "kind: a\0b\n",
    "NUL, escaped": f'{RATES}{{names: ["a\\0b"]}}\n',
    "lone surrogate": f'{RATES}{{names: ["\\ud800"]}}\n  profile: "\\udfff"\n"\\ud800": 1\n',
    "huge integer": f"{RATES}{{}}\n  priority: {'9' * 5_000}\n  static: {{qps: 1{'0' * 400}, burst: -{'9' * 400}}}\n",
    "huge hexadecimal": f"{RATES}{{}}\n  priority: 0x{'f' * 5_000}\n",
    "no number": f"{RATES}{{}}\n  priority: .nan\n  static: {{qps: .inf, burst: -.inf}}\n",
    "huge float": f"{RATES}{{}}\n  static: {{qps: 1.0e+999, burst: {'9' * 400}.5}}\n",
    "hostile label key": f"{RATES}{{matchLabels: {{? {'a' * 60 + '-' * 60 + 'a.' * 400 + '!'} : x}}}}\n",
    "hostile label value": f"{RATES}{{matchLabels: {{a: {'a-' * 500}!}}}}\n",
    "hostile version": CLUSTER.replace("1.17", "1." * 500 + "!"),
    "hostile URL": CLUSTER + f"  monitoring: {{url: 'https://{'a/' * 1000}?'}}\n",
    "hostile duration": f"{RATES}{{}}\n  adaptive: {{bootStorm: {{within: {'9h' * 500}!}}}}\n",
    "key that is a list": "? [a, b]\n: c\n",
    "key that is a mapping": "? {a: b}\n: c\n",
    "keys that are no texts": f"{RATES}{{}}\n  1: a\n  true: b\n  ~: c\n  1.5: d\n",
    "percent sign": "%YAML 9.9\n---\na: b\n",
    "tag directive": "%TAG ! tag:x,2000:\n---\n!a b: c\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_nasty_text_gives_findings(tmp_path: Path, name: str) -> None:
    """As whole programs: what ends the process or never ends must fail this test and no other."""
    put(tmp_path, {"policies/cluster.yaml": CLUSTER.encode(), "policies/nasty.yaml": NASTY[name].encode()})
    ended = program(tmp_path, "render", "--output-format", "json")
    assert ended.returncode == 1
    findings = json.loads(ended.stdout)["findings"]
    assert {finding["file"] for finding in findings if finding["severity"] == "error"} == {"policies/nasty.yaml"}
    assert not (tmp_path / "overlays").exists()
    assert program(tmp_path, "check").returncode == 1


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 200 + "b",
        "**/" * 60 + "*.yaml",
        "**/*/" * 40 + "x",
        "[" * 500,
        "[!" + "a-z" * 300 + "]*",
        "?" * 300,
        "**",
    ],
    ids=["stars", "folders", "both", "brackets", "class", "marks", "all"],
)
def test_hostile_manifests_pattern_ends(tmp_path: Path, pattern: str) -> None:
    files = {f"vms/{'a' * 100}/{n}/{'a' * 120}.yaml": b"kind: a\n" for n in range(20)}
    deep = {"deep/" + "d/" * 25 + "vm.yaml": b"kind: a\n"}
    policy = POLICY.replace("reference\n", f"expand\n  manifests: ['{pattern}']\n")
    put(tmp_path, {"policies/cluster.yaml": CLUSTER.encode(), "policies/nasty.yaml": policy.encode(), **files, **deep})
    assert program(tmp_path, "render").returncode == 0


def test_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path, {"policies/cluster.yaml": CLUSTER.encode()})
    os.mkfifo(tmp_path / "policies/pipe.yaml")
    ended = program(tmp_path, "check")
    assert ended.returncode == 1
    assert "policies/pipe.yaml:1:1: error: a named pipe, not a file [policy/unreadable]" in ended.stdout


def test_links_in_a_circle(tmp_path: Path) -> None:
    put(tmp_path, {"policies/cluster.yaml": CLUSTER.encode()})
    (tmp_path / "policies/a.yaml").symlink_to("b.yaml")
    (tmp_path / "policies/b.yaml").symlink_to("a.yaml")
    (tmp_path / "policies/again").symlink_to(".")
    ended = program(tmp_path, "check")
    assert ended.returncode == 1
    for name in ("a.yaml", "b.yaml", "again"):
        assert f"policies/{name}:1:1: error: a link " in ended.stdout


@pytest.mark.parametrize("command", ["check", "render"])
def test_policies_may_not_be_a_link(tmp_path: Path, command: str) -> None:
    put(tmp_path, {"elsewhere/cluster.yaml": CLUSTER.encode()})
    (tmp_path / "policies").symlink_to("elsewhere")
    ended = program(tmp_path, command)
    assert ended.returncode == 1
    assert "policies:1:1: error: policies is a link" in ended.stdout


def test_policies_may_not_be_a_file(tmp_path: Path) -> None:
    put(tmp_path, {"policies": CLUSTER.encode()})
    ended = program(tmp_path, "render")
    assert ended.returncode == 1
    assert "policies is not a folder" in ended.stdout


def test_names_of_files_that_cannot_be_printed(tmp_path: Path) -> None:
    put(tmp_path, {"policies/cluster.yaml": CLUSTER.encode(), "policies/a\nb.yaml": b"kind: [\n"})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/policies/\xff.yaml")).write_bytes(b"kind: [\n")
    ended = program(tmp_path, "check", "--output-format", "json")
    findings = json.loads(ended.stdout)["findings"]
    files = [finding["file"] for finding in findings if finding["code"] == "policy/unreadable"]
    assert files == ["policies/\\udcff.yaml", "policies/a\\nb.yaml"]


@pytest.mark.parametrize("name", ["é" * 3, "\udcff"])
def test_terminal_without_unicode(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    put(root, {"policies/a.yaml": b"kind: \xc3\xa9\xe2\x80\xa6\n"})
    for command in ("check", "render"):
        assert program(root, command, PYTHONIOENCODING="ascii").returncode == 1
    (root / "policies/a.yaml").unlink()
    assert program(root, "check", PYTHONIOENCODING="ascii").returncode == 2


# The same bytes everywhere


def documents(files: Mapping[str, bytes]) -> list[bytes]:
    return [
        part + b"\n" for name, data in files.items() if name.startswith("policies/") for part in data.split(b"\n---\n")
    ]


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_order_and_split_of_files_do_not_matter(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - reproducible on purpose
    parts = documents(fleet())
    chance.shuffle(parts)
    other = {name: data for name, data in fleet().items() if not name.startswith("policies/")}
    while parts:
        count = chance.randint(1, 5)
        name = f"policies/{chance.choice('abc')}/{chance.randrange(10**9)}.{chance.choice(('yaml', 'yml'))}"
        other[name] = b"---\n".join(parts[:count])
        del parts[:count]
    with repository(fleet()) as one, repository(other) as two:
        first, second = render(one), render(two)
    assert not first.failed
    assert first.files == second.files
    assert sorted((one.code, one.clusters, one.message) for one in first.findings) == sorted(
        (one.code, one.clusters, one.message) for one in second.findings
    )


def test_surroundings_do_not_matter(tmp_path: Path) -> None:
    surroundings: list[tuple[dict[str, str], int, str]] = [
        ({"TZ": "UTC", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}, 0o022, "."),
        ({"TZ": "Asia/Kathmandu", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "1"}, 0o022, "policies/clusters"),
        ({"TZ": "America/New_York", "LC_ALL": "POSIX", "PYTHONHASHSEED": "77", "COLUMNS": "20"}, 0o077, "."),
        ({"PYTHONHASHSEED": "123", "PYTHONUTF8": "0", "LC_ALL": "C", "HOME": "/nonexistent"}, 0o027, "overlays"),
    ]
    written, said = [], []
    for number, (environment, mask, where) in enumerate(surroundings):
        root = tmp_path / f"a path {number}"
        put(root, {**fleet(), ".kubevirt-policy.yaml": b"{}\n"})
        (root / "overlays").mkdir()
        before = os.umask(mask)
        try:
            said.append(program(root / where, "render", "--output-format", "json", **environment).stdout)
        finally:
            os.umask(before)
        written.append(read_tree(root))
    assert any(name.startswith("overlays/prod-east/") for name in written[0])
    assert written[1:] == written[:1] * 3
    assert said[1:] == said[:1] * 3


def test_rendering_again_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, fleet())
    assert program(tmp_path, "render").returncode == 0
    once = read_tree(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = program(tmp_path, "render")
    assert "nothing changed" in again.stderr
    assert read_tree(tmp_path) == once
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    checked = json.loads(program(tmp_path, "check", "--output-format", "json").stdout)
    assert checked["files"] == []
    assert checked["summary"]["errors"] == 0


# Nothing outside overlays/


NAMES = st.one_of(
    st.sampled_from(["..", "../x", "../../x", "/etc", "a/../../b", ".", "", "~", "overlays", "_x", "_delivery",
    ".git", "con", "a\\b"]),
    st.sampled_from(["a" * 64, "a.b", "a\nb", "a\0b", "${x}", "$(x)", "%2e%2e", "A", "-a", "x: y", "[a]",
    "\u202e", "\ud800"]),
    st.text(max_size=12),
)  # fmt: skip


API = {"apiVersion": "kubevirt-policy.dev/v1alpha1"}
PLACES: dict[str, tuple[str | int, ...]] = {
    "cluster": (0, "metadata", "name"),
    "label": (0, "metadata", "labels", "env"),
    "object": (0, "spec", "operatorResource", "name"),
    "namespace": (0, "spec", "operatorResource", "namespace"),
    "crds": (0, "spec", "crds"),
    "base of a component": (1, "spec", "operatorResource", "base"),
    "base of an overlay": (2, "spec", "operatorResource", "base"),
    "limits": (3, "metadata", "name"),
    "ConfigMap": (3, "spec", "static", "configMapRef", "path"),
    "expansion": (4, "metadata", "name"),
    "manifests": (4, "spec", "manifests", 0),
}


def hostile(place: str, value: str) -> tuple[list[Any], dict[str, bytes]]:
    """A fleet that uses every name and path there is, all good but for one; and the files that it needs."""
    base = {
        "kustomization.yaml": b"resources: [object.yaml]\ncomponents: [../../overlays/one/operator]\n",
        "object.yaml": b"apiVersion: hco.kubevirt.io/v1beta1\nkind: HyperConverged\n"
        b"metadata: {name: kubevirt-hyperconverged, namespace: openshift-cnv}\n",
    }
    limits = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {qps: "300", burst: "600"}\n'
    common = {"platform": "openshift", "versions": {"hyperconverged": "1.17"}, "delivery": {"engine": "argocd"}}
    resources: list[dict[str, Any]] = [
        {"appliedBy": "other", "name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        {"form": "component", "base": "bases/one"},
        {"form": "overlay", "base": "bases/two"},
    ]
    documents: list[Any] = [
        {"kind": "Cluster", "metadata": {"name": name, "labels": {"env": "prod"}}}
        | {"spec": {**common, "operatorResource": resource, "crds": "crds"}}
        for name, resource in zip(["plain", "one", "two"], resources, strict=True)
    ]
    static = {"configMapRef": {"path": "limits.yaml"}}
    expand = {"referencePolicy": "expand", "manifests": ["bases/**/*.yaml"]}
    documents += [
        {"kind": "RateLimitPolicy", "metadata": {"name": "limits"}, "spec": {"clusters": {}, "static": static}},
        {"kind": "ExpansionPolicy", "metadata": {"name": "expand"}, "spec": {"clusters": {}, **expand}},
    ]
    node: Any = documents
    *path, last = PLACES[place]
    for step in path:
        node = node[step]
    node[last] = value
    files = {f"bases/{name}/{file}": data for name in ("one", "two") for file, data in base.items()}
    files["bases/two/kustomization.yaml"] = b"resources: [object.yaml]\n"
    return documents, files | {"limits.yaml": limits, "crds/README.md": b"none yet\n"}


@settings(parent=FUZZ, max_examples=150)
@given(place=st.sampled_from(sorted(PLACES)), value=NAMES)
def test_nothing_is_written_outside_the_overlays(place: str, value: str) -> None:
    documents, files = hostile(place, value)
    text = "---\n".join(json.dumps(API | body) + "\n" for body in documents)
    with repository({"policies/any.yaml": text.encode(), **files}) as root:
        before = outside(root)
        outcome = render(root)
        if not outcome.failed:
            write(root, "overlays", outcome.files)
        assert outside(root) == before
        assert {item.name for item in root.parent.iterdir()} == {"root"}


def test_the_fleet_that_is_made_hostile_renders(tmp_path: Path) -> None:
    documents, files = hostile("label", "test")
    text = "---\n".join(json.dumps(API | body) + "\n" for body in documents)
    put(tmp_path, {"policies/any.yaml": text.encode(), **files})
    outcome = render(tmp_path)
    assert not outcome.failed, outcome.findings
    assert {path.split("/")[1] for path in outcome.files} == {"plain", "one", "two"}


# What is written is read as it was meant


READER_1_1 = yaml_1_1.SafeLoader
JSON_SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.text(max_size=30),
    st.sampled_from(
        ["on", "y", "N", "0123", "089", "0o17", "1e3", "1e+3", "1_000", "12:30:00", "3:25", "2024-01-01", "=",
        "<<", ".inf", "1.0",
        "~", "null", "", " ", "- a", "? a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a",
        "'", '"', "\\",
        "a\nb", "a\nb\n", "\n", "a\n\nb", " a\nb", "a \nb", "a\n", "a\n\n", "\ta", "a\tb", "a\r\nb",
        "x" * 300, "x " * 200,
        "\x85", "\u2028", "\ufeff", "\u00a0", "\U0001f600", "\x7f", "{{ $labels.node }}", "${x}", "---", "...",
        "--- a", "a\n---\nb"]
    ),
)  # fmt: skip
KEYS = st.one_of(st.text(max_size=8), JSON_SCALARS.map(str))
JSON_DATA = st.recursive(
    JSON_SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def read_1_1(text: str) -> Any:
    return yaml_1_1.load(text, READER_1_1)  # noqa: S506 - it is the safe one


def read_1_2(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@settings(deadline=None, max_examples=150)
@given(body=st.dictionaries(KEYS, JSON_DATA, max_size=5))
def test_emitted_data_is_read_back_by_both_kinds_of_reader(body: dict[str, Any]) -> None:
    text = emit.yaml(body)
    assert read_1_1(text) == body
    assert read_1_2(text) == body
    assert types(read_1_1(text)) == types(body) == types(read_1_2(text))
    assert emit.yaml(read_1_1(text)) == text
    assert text.endswith("\n")
    assert "\r" not in text


def types(data: Any) -> Any:
    """The shape, in which `True` is not `1`."""
    if isinstance(data, dict):
        return {key: types(item) for key, item in data.items()}
    return [types(item) for item in data] if isinstance(data, list) else type(data).__name__


@pytest.mark.parametrize("value", [1.5, math.nan, None, b"a", {1, 2}, {1: 2}, {None: 2}])
def test_data_that_json_lacks_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        emit.yaml({"a": value})


def test_rendered_files_are_read_alike_and_sealed(tmp_path: Path) -> None:
    put(tmp_path, fleet())
    outcome = render(tmp_path)
    assert len(outcome.files) > 20
    for text in outcome.files.values():
        assert header.ownership(text) is Ownership.INTACT
        assert header.ownership(text + "# a hand\n") is Ownership.EDITED
        assert read_1_1(text) == read_1_2(text)
        body = read_1_2(text)
        assert emit.yaml(body) == text[text.index("\n", text.index("# Digest:")) + 1 :]


def test_an_error_anywhere_writes_nothing(tmp_path: Path) -> None:
    put(tmp_path, {**fleet(), "policies/zz.yaml": b"kind: [\n"})
    outcome = render(tmp_path)
    assert [finding.severity for finding in outcome.findings if finding.position.file.endswith("zz.yaml")] == [
        Severity.ERROR
    ]
    assert program(tmp_path, "render").returncode == 1
    assert not (tmp_path / "overlays").exists()


def test_overlays_of_the_example_fleet_are_clean(tmp_path: Path) -> None:
    put(tmp_path, fleet())
    shutil.copytree(ROOT / "overlays", tmp_path / "overlays")
    assert compare(tmp_path, "overlays", render(tmp_path).files).changes == ()
