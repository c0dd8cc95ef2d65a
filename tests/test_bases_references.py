"""References of kustomizations and targets of patches, which strangers wrote."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer import model
from renderer.bases.paths import relative, remote, resolve
from renderer.bases.targets import Target
from renderer.bases.values import Refused, Subject
from renderer.model import Body, Document, Origin, Position

REMOTE = [
    "https://github.com/org/repo/x.yaml", "HTTP://x.example/y", "ssh://git@x.example/org/repo", "git::https://x.example/o/r",
    "github.com/org/repo//path?ref=v1", "github.com/org/repo", "git@github.com:org/repo.git", "git@x.example:org/repo",
    "file:///srv/repo", "GitHub.com/org/repo",
]  # fmt: skip
LOCAL = ["hco.yaml", "../x", "a/b@c/d", "github.com", "user@host", "git@dir/x", "github.community/x/y", "a:b/c"]


@pytest.mark.parametrize("reference", REMOTE)
def test_remote(reference: str) -> None:
    assert remote(reference)


@pytest.mark.parametrize("reference", LOCAL)
def test_local(reference: str) -> None:
    assert not remote(reference)


@pytest.mark.parametrize(
    ("folder", "reference", "path"),
    [
        ("base", "hco.yaml", "base/hco.yaml"),
        ("base", "./a//b/../c/", "base/a/c"),
        ("base", "..", ""),
        ("", "base", "base"),
        ("base", "../..", None),
        ("", "..", None),
        ("base", "/x", None),
        ("base", "", None),
        ("base", "..x", "base/..x"),
    ],
)
def test_resolve(folder: str, reference: str, path: str | None) -> None:
    assert resolve(folder, reference) == path


@given(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abc"), max_size=4))
def test_relative_leads_back(one: list[str], other: list[str]) -> None:
    path, folder = "/".join(one), "/".join(other)
    assert resolve(folder, relative(path, folder)) == path


def selects(**fields: str) -> bool:
    document = Document("k.yaml", {}, Nowhere())
    body: Body = {
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hc"},
    }
    return Target(fields, Origin(document)).selects(Subject(body, Origin(document)))


class Nowhere:
    def at(self, path: model.Path, *, key: bool = False) -> Position:
        return Position("k.yaml")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("kubevirt-hc", True), ("kubevirt", False), (".*", True), ("kube.*", True), ("^kubevirt-hc$", True),
        ("kubevirt.hc", True), ("kubevirt\\.hc", False), ("(kubevirt|hco)-hc", True), ("a|kubevirt-hc|b", True),
        ("kubevirt-[a-z]+", True), ("kubevirt-[^h]c", False), ("kubevirt-hco?", True), ("", True),
    ],
)  # fmt: skip
def test_pattern(pattern: str, matches: bool) -> None:
    assert selects(name=pattern) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+", "(a|a)*b", "(?:x*)*", "(?=a)", "(?P<n>a)", "(a)\\1", "a{1,1000}", ".*.*.*.*x", "[[:alpha:]]+",
        "\\w+", "a**", "a*?", "(", "[z-a]", "(?i)a", "((a)b)", "\\pL",
    ],
)  # fmt: skip
def test_pattern_refused(pattern: str) -> None:
    with pytest.raises(Refused):
        selects(name=pattern)


def test_a_pattern_is_not_looked_at_where_the_kind_differs() -> None:
    assert not selects(kind="Deployment", name="(a+)+")


@given(st.text(alphabet="ab.*+?|()[]^$\\-{}", max_size=40))
def test_no_pattern_takes_long(pattern: str) -> None:
    started = time.process_time()
    with contextlib.suppress(Refused):
        selects(name=pattern)
    assert time.process_time() - started < 0.5
