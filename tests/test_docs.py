"""The documentation, held against the program: its examples are rendered and its commands are run.

In a page, a fenced block whose first line is a comment with a path, as in `# policies/limits.yaml`, is that file; a
block of our API without one is some policy file.  A `console` block is run where the page has got to by then, and has
to print what it shows; a line `…` in it stands for any lines.  A page that shows no Cluster has the one of
docs/findings/README.md.  `<!-- fresh tree -->` begins anew, `<!-- example fleet -->` with this repository's own files.

`pytest tests/test_docs.py --update` writes into the pages what the commands print now.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from renderer import __main__ as main
from renderer.findings import SEVERITIES
from renderer.kinds import KINDS
from renderer.kinds.base import API_VERSION
from renderer.kinds.schema import schema
from renderer.releases import hyperconverged, kubevirt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FINDINGS = DOCS / "findings"
INDEX = FINDINGS / "README.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
POLICIES = sorted((ROOT / "policies").rglob("*.yaml"))

BLOCK = re.compile(
    r"^```(?P<language>[a-z]*)\n(?P<body>.*?)^```$|^<!-- (?P<order>[a-z ]+) -->$", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"# (?P<path>[\w.-]+(?:/[\w.-]+)*)\n")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?P<path>[^)#:\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
CODE = re.compile(r"(?:error|warning): .*\[(?P<code>[a-z-]+/[a-z-]+)\]$", re.MULTILINE)
ANY = "…"
CONFIG_CODES = {f"config/{name}" for name in ("syntax", "type", "unknown-key", "unreadable", "value", "version")}
MAKE = 'make() { echo ".venv/bin/kubevirt-policy $1"; kubevirt-policy "$1"; }\n'


@dataclass(frozen=True)
class Command:
    """A line after `$ `, and the lines below it."""

    line: str
    expected: str


@cache
def stage() -> str:
    """The cluster that pages without one of their own have."""
    return next(body for body in bodies(INDEX) if "kind: Cluster\n" in body)


def bodies(page: Path) -> list[str]:
    return [found["body"] for found in BLOCK.finditer(page.read_text()) if found["body"]]


def commands(body: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        yield Command(line, expected)


def play(page: Path, text: str, root: Path) -> tuple[str, str]:
    """The text of the page with what its commands print now, and all of that output.  Elided blocks are kept."""
    out, printed, at = [], [], 0
    shown = ""
    begin(page, text, root)
    for number, found in enumerate(BLOCK.finditer(text)):
        out.append(text[at : found.start()])
        at, block = found.end(), found.group()
        if found["order"]:
            order(found["order"], root)
        elif found["language"] == "console":
            shown, result = run(found["body"], root)
            printed.append(result)
            block = f"```console\n{shown}```"
        elif path := placed(found["body"], number):
            write(root / path, found["body"])
        out.append(block)
    return "".join([*out, text[at:]]), "".join(printed)


def begin(page: Path, text: str, root: Path) -> None:
    """The cluster, and for a finding everything before the first command, rendered as if it were committed."""
    if "kind: Cluster\n" not in text:
        write(root / "policies" / "cluster.yaml", stage())
    if FINDINGS in page.parents and page != INDEX:
        for number, found in enumerate(BLOCK.finditer(text.partition("```console")[0])):
            if path := placed(found["body"] or "", number):
                write(root / path, found["body"])
        ours(["render"], root)


def order(words: str, root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()
    if words == "example fleet":
        for name in ("policies", "platform", "overlays"):
            shutil.copytree(ROOT / name, root / name)
    else:
        assert words == "fresh tree", words


def placed(body: str, number: int) -> str | None:
    """The path of the file that a block shows, if it shows one."""
    if found := FILE.match(body):
        return found["path"]
    return f"policies/example-{number}.yaml" if f"apiVersion: {API_VERSION}\n" in body else None


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(body: str, root: Path) -> tuple[str, str]:
    shown, printed = [], []
    for command in commands(body):
        result = execute(command.line, root)
        printed.append(result)
        elided = ANY in command.expected.splitlines()
        assert not elided or matches(command.expected, result), f"{command.line} prints\n{result}"
        shown.append(f"$ {command.line}\n{command.expected if elided else result}")
    return "".join(shown), "".join(printed)


def matches(expected: str, printed: str) -> bool:
    lines = (".*" if line == f"{ANY}\n" else re.escape(line) for line in expected.splitlines(keepends=True))
    return re.fullmatch("".join(lines), printed, re.DOTALL) is not None


def execute(line: str, root: Path) -> str:
    """What a command prints.  A plain call of ours runs in this process, which takes a tenth of the time."""
    plain = None if "--kustomize" in line else re.fullmatch(r"kubevirt-policy ([\w ./-]+)", line)
    text = ours(plain[1].split(), root) if plain else bash(line, root)
    text = text.replace(str(root), "<root>")
    return text if not text or text.endswith("\n") else f"{text}\n"


def ours(arguments: list[str], root: Path) -> str:
    printed = io.StringIO()
    with chdir(root), redirect_stdout(printed), redirect_stderr(printed):
        main.run(arguments)
    return printed.getvalue()


def bash(line: str, root: Path) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root.parent),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    shell = ["/bin/bash", "-c", f"exec 2>&1\n{MAKE}{line}"]
    return subprocess.run(shell, cwd=root, env=environment, stdout=subprocess.PIPE, check=False).stdout.decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    return path


NEEDS_PROMTOOL = ("rules/test-failed",)
"""Pages whose output is not played here: tests/rules/test_command.py sees it, with the real promtool."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_says_what_the_program_does(page: Path, root: Path, pytestconfig: pytest.Config) -> None:
    text = page.read_text()
    played, printed = play(page, text, root)
    if pytestconfig.getoption("update"):
        page.write_text(played)
        text = played
    assert played == text
    if FINDINGS in page.parents and page != INDEX:
        code = str(page.relative_to(FINDINGS).with_suffix(""))
        assert f"[{code}]" in (text if code in NEEDS_PROMTOOL else printed)
        also = set(CODE.findall(printed)) - {code}
        assert all(f"{one}.md)" in text or f"]({one.partition('/')[2]}.md)" in text for one in also), also
    elif "```console" not in text and f"apiVersion: {API_VERSION}\n" in text:
        report = json.loads(ours(["render", "--output-format", "json"], root))
        assert report["summary"]["errors"] == 0, report


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)):
        target = (page.parent / found["path"]).resolve() if found["path"] else page
        assert target.exists(), found.group()
        if found["anchor"]:
            assert found["anchor"] in anchors(target), found.group()


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives the headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_finding_has_a_page_and_every_page_a_finding() -> None:
    pages = {str(page.relative_to(FINDINGS).with_suffix("")) for page in FINDINGS.rglob("*.md")} - {"README"}
    assert pages == {*SEVERITIES, *CONFIG_CODES}


def test_index_of_findings() -> None:
    rows = re.findall(r"^\| \[`(.+?)`\]\((.+?)\.md\) \| (.+?) \| .+ \|$", INDEX.read_text(), re.MULTILINE)
    assert all(code == path for code, path, _ in rows)
    found = {code: severity for code, _, severity in rows}
    assert found == {**{code: str(one) for code, one in SEVERITIES.items()}, **dict.fromkeys(CONFIG_CODES, "exit 2")}
    assert len(rows) == len(found)


@pytest.mark.parametrize("code", sorted(SEVERITIES))
def test_page_names_code_and_severity(code: str) -> None:
    first, _, second = (FINDINGS / f"{code}.md").read_text().splitlines()[:3]
    assert (first, second.partition(" ")[0]) == (f"# {code}", f"**{SEVERITIES[code]}**")


def test_readme_tells_what_the_release_tables_say() -> None:
    rows = re.findall(r"^\| (1\.\d+) \| .* \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert rows == list(hyperconverged.RELEASES)
    for release in hyperconverged.RELEASES.values():
        assert row(release) in (ROOT / "README.md").read_text()


def row(release: hyperconverged.HyperConvergedRelease) -> str:
    inside = kubevirt.RELEASES[release.kubevirt]
    downstream = hyperconverged.downstream(release.minor)
    version = " of API version v1" if release.default_api_version.endswith("/v1") else ""
    limits = f"field and annotation{version}" if release.tuning_policy else "JSON patch"
    replicas = "JSON patch" if inside.replicas_patch else "refused"
    policy = f"field{version}" if release.reference_policy else "JSON patch, with gate"
    if not inside.reference_policy:
        policy = "refused"
    cells = (release.minor, downstream, release.kubevirt, limits, "JSON patch", replicas, policy)
    return f"| {' | '.join(cells)} |"


def test_architecture_names_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    assert "\n".join(["```text", *layers, "```"]) in (DOCS / "architecture.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_current(kind: str) -> None:
    assert (DOCS / "schemas" / f"{kind}.json").read_text() == json.dumps(
        schema(kind), indent=2, ensure_ascii=False
    ) + "\n", "run: kubevirt-policy schema --directory docs/schemas"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_schema_is_described(kind: str) -> None:
    objects = schema(kind)["$defs"]
    bare = [
        f"{name}.{key}"
        for name, rules in objects.items()
        for key, field in rules["properties"].items()
        if "description" not in objects.get(field.get("$ref", "").rpartition("/")[2], {}) | field
    ]
    assert not bare


def test_no_schema_is_left_over() -> None:
    assert {path.stem for path in (DOCS / "schemas").iterdir()} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_fit_their_schema(kind: str) -> None:
    rules = json.loads((DOCS / "schemas" / f"{kind}.json").read_text())
    for name, model in rules["$defs"].items():
        for key, field in model["properties"].items():
            if "default" in field:
                place = {"$ref": f"#/$defs/{name}/properties/{key}", "$defs": rules["$defs"]}
                jsonschema.Draft202012Validator(place).validate(field["default"])


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_example_policy_fits_its_schema(path: Path) -> None:
    found = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
    assert found, "the first line names no schema"
    rules: dict[str, Any] = json.loads((path.parent / found[1]).read_text())
    jsonschema.Draft202012Validator.check_schema(rules)
    for document in yaml.safe_load_all(path.read_text()):
        assert document["kind"] == Path(found[1]).stem
        jsonschema.Draft202012Validator(rules).validate(document)
