"""Soft-tainters that go, or only look on, and the taints that would then stay on the nodes for ever."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.soft_taint_spec import CONFIG_FILE, FOLDER
from renderer.model import Document, Origin, Overlay, Path, Position, Problem, Tree, TreeError
from renderer.releases.descheduler_operator import TABLE, Tainter

_ENFORCED, _LOOKS_ON = '"mode": "Enforce"', '"mode": "DryRun"'
_CONFIG = f"{FOLDER}/{CONFIG_FILE}.yaml"


def tended(overlay: Overlay, policies: Sequence[Decoded[Policy]], site: Site | None) -> bool:
    """Whether somebody removes soft taints on a cluster: our job, unless it only looks on, or the operator's."""
    writes = _CONFIG in overlay.files and _LOOKS_ON not in overlay.files[_CONFIG]
    return writes or (site is not None and _hands_over(policies, site))


def _hands_over(policies: Sequence[Decoded[Policy]], site: Site) -> bool:
    """The operator's tainter runs wherever such a taint is left, and removes it in mode Automatic."""
    return any(TABLE[name].tainter is not Tainter.NONE for name in site.descheduler.schemas[:1]) and any(
        isinstance(policy.value, RebalancePolicy) and policy.value.spec.mode == "Automatic" for policy in policies
    )


def left_behind(tree: Tree, overlays: str, kept: Collection[str]) -> Iterator[tuple[str, Problem]]:
    """The configuration of each job that wrote taints, on clusters where nobody would remove them any more.

    `kept` are the clusters that have a tainter still.
    """
    for cluster in clusters(tree, overlays):
        if cluster not in kept:
            path = f"{overlays}/{cluster}/{_CONFIG}"
            data = read(tree, path)
            if _ENFORCED.encode() in data:
                yield cluster, _problem(path, data.decode("utf-8", "replace"))


def _problem(path: str, text: str) -> Problem:
    from renderer.softtaint.taints import TAINTS  # late: hardly ever needed

    message = (
        f"the job has written the taints {' and '.join(TAINTS)}, and nobody would remove them any more: "
        "they would stay on the nodes"
    )
    folder = path.rpartition("/")[0]
    help = (
        "Write softTaint mode: RemoveOnly first, and go on once a pass has run. Where the cluster is gone, or "
        f"somebody cleans up by hand, delete {folder} yourself, and once the job is gone run: {untaint()}"
    )
    return Problem("soft-taint/left-behind", Origin(Document(path, {}, At(path, text, _ENFORCED))), message, help)


def untaint() -> str:
    """The commands that remove the taints by hand: one for each key, or nodes with one of the two are left alone."""
    from renderer.softtaint.taints import EFFECT, TAINTS

    return "; ".join(f"kubectl taint nodes --all {key}:{EFFECT}-" for key in TAINTS)


class At:
    """Every field of the file stands where `words` do: the rest of it may be anything."""

    def __init__(self, path: str, text: str, words: str) -> None:
        start = text.find(words)
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        self._position = Position(path, line, column, len(words))

    def at(self, path: Path, *, key: bool = False) -> Position:
        del path, key
        return self._position


def clusters(tree: Tree, overlays: str) -> Iterator[str]:
    """The clusters that have an overlay in the repository, rendered or not."""
    try:
        entries = tree.list(overlays)
    except TreeError:
        return
    for entry in entries:
        if entry.folder and not entry.problem and not entry.name.startswith("_"):
            yield entry.name


def read(tree: Tree, path: str) -> bytes:
    """A file, or nothing where it cannot be read."""
    try:
        return tree.read(path)
    except TreeError:
        return b""
