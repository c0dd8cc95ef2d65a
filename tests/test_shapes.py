"""Clusters that are rendered together come out as if each were the only one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from renderer.pipeline import Outcome, Settings, run
from renderer.tree import DiskTree

_BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
_CLUSTERS = 54  # each of the nine profiles six times: alone, measured, and as component and overlay


@pytest.mark.parametrize("bases", [False, True], ids=["partial", "with bases"])
def test_together_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, bases: bool) -> None:
    monkeypatch.setattr(sys, "path", [str(_BENCHMARKS), *sys.path])
    import fleet

    fleet.write(tmp_path, _CLUSTERS, bases=bases)
    together = _run(tmp_path)
    assert len(together.rendered) == _CLUSTERS
    for cluster in together.rendered:
        alone = _run(_only(tmp_path, cluster))
        assert alone.rendered[cluster].overlay == together.rendered[cluster].overlay
        assert _said(alone, cluster) == _said(together, cluster)


def _run(root: Path) -> Outcome:
    return run(DiskTree(root), Settings())


def _only(root: Path, cluster: str) -> Path:
    """The same repository without the other clusters."""
    for folder in ("clusters", "facts"):
        for path in (root / "policies" / folder).iterdir():
            hidden = path.with_suffix("") if path.suffix else path
            path.rename(hidden.with_suffix(".yaml") if hidden.name == cluster else hidden)
    return root


def _said(outcome: Outcome, cluster: str) -> set[tuple[str, str]]:
    return {(one.code, one.message) for one in outcome.findings if cluster in one.clusters}
