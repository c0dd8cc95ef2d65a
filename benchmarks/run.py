"""Measures whole runs of the renderer on fleets of 1 to 10,000 clusters, beside kustomize and kapitan.

Prints a table and the goals, met or missed; a missed goal is no failure, since machines and their load differ.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import fleet
import others
from measure import Failed, Figures, Run, run

HERE = Path(__file__).resolve().parent
PROGRAM = str(Path(sys.executable).with_name("kubevirt-policy"))
SIZES = (1, 10, 100, 1_000, 10_000)
EVERY_KIND = " with policies of every kind"
_LARGE = 5_000  # from here on, fewer runs are made
_SAMPLE = 20  # overlays that kustomize builds, one process each
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    clusters: int
    figures: Figures
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.what}, {self.clusters:,}" if self.clusters else self.what


@dataclass(slots=True)
class Bench:
    """What is measured where; rows are added as they come, and printed at once.

    Nothing is deleted while it measures.  ext4 without a journal passes over each inode that was freed in the last five
    minutes before it gives out a new one, so that creating files after a deletion costs many times what it costs
    otherwise.
    """

    folder: Path
    log: IO[bytes]
    runs: int
    rows: list[Row] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        # As installed: with bytecode in place, and without what a developer's shell may set.
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        self.environment["PYTHONPYCACHEPREFIX"] = str(self.folder / "bytecode")

    def new_path(self) -> Path:
        """A path where nothing is yet, on the same filesystem as all others."""
        return self.folder / f"{next(self._numbers):04}"

    def set_aside(self, path: Path) -> None:
        """Moves a file or folder out of the way, if it is there."""
        if path.exists():
            path.rename(self.new_path())

    def once(self, command: Sequence[str], cwd: Path) -> Run:
        return run(command, cwd=cwd, environment=self.environment, log=self.log)

    def times(self, clusters: int) -> range:
        return range(self.runs if clusters < _LARGE else max(2, self.runs // 2))

    def add(self, what: str, clusters: int, runs: Sequence[Run], note: str = "") -> None:
        self.rows.append(Row(what, clusters, Figures(runs), note))
        print(_line(self.rows[-1]), flush=True)

    def find(self, what: str, clusters: int = 0) -> Figures | None:
        return next((row.figures for row in self.rows if (row.what, row.clusters) == (what, clusters)), None)


def main() -> int:
    """Runs what the arguments ask for, prints it, and writes it as JSON."""
    given = _arguments()
    print(f"{_machine()}; Python {platform.python_version()}; median and minimum of {given.runs} runs.\n")
    print("| what | clusters | wall s | min | CPU s | min | peak MiB | |\n|---|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory(prefix="kubevirt-policy-bench-") as folder, tempfile.TemporaryFile() as log:
        bench = Bench(Path(folder), log, given.runs)
        try:
            _measure(bench, given)
        except Failed as error:
            print(error, file=sys.stderr)
            return 1
        goals = list(_goals(bench))
    print("\nGoals:\n" + "\n".join(f"- {goal}" for goal in goals))
    given.json.write_text(json.dumps(_results(bench.rows, goals), indent=2) + "\n")
    print(f"\nAlso in {given.json}.")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each command; half of it for the largest fleets")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="clusters of the fleets")
    parser.add_argument("--quick", action="store_true", help="only the fleets, without hard ones and other programs")
    parser.add_argument("--kapitan", action="store_true", help="also kapitan, which is installed into .venv-bench")
    parser.add_argument(
        "--json", type=Path, default=HERE / "results.json", metavar="FILE", help="where to write it all"
    )
    return parser.parse_args()


def _measure(bench: Bench, given: argparse.Namespace) -> None:
    _start_up(bench)
    for clusters in given.sizes:
        _fleet(bench, "", clusters, fleet.write)
    if given.quick:
        return
    for clusters in (1_000, 10_000):
        _fleet(bench, EVERY_KIND, clusters, lambda root, count: fleet.write(root, count, every_kind=True))
    _fleet(bench, " with bases", 1_000, lambda root, count: fleet.write(root, count, bases=True))
    _fleet(
        bench, " of a fleet with 200 more policies", 10_000, lambda root, count: fleet.write_contested(root, count, 200)
    )
    _fleet(bench, " with a warning each", 10_000, lambda root, count: fleet.write_warned(root, count, files=count))
    _fleet(
        bench, " with a warning each, in 6 files", 10_000, lambda root, count: fleet.write_warned(root, count, files=6)
    )
    _kustomize(bench)
    if given.kapitan:
        for clusters in (100, 1_000):
            _kapitan(bench, clusters)


def _start_up(bench: Bench) -> None:
    bench.once([PROGRAM, "--help"], bench.folder)
    for what, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("--help", [PROGRAM, "--help"]),
        ("version", [PROGRAM, "version"]),
    ):
        bench.add(what, 0, [bench.once(command, bench.folder) for _ in range(2 * bench.runs)])


def _fleet(bench: Bench, kind: str, clusters: int, write: Callable[[Path, int], None]) -> None:
    """Cold, unchanged and check in turn, so that whatever else the machine does falls on all of them alike."""
    root = bench.new_path()
    write(root, clusters)
    bench.once([PROGRAM, "check", "--allow-empty", "--help"], root)
    found: dict[str, list[Run]] = {"render cold": [], "render unchanged": [], "check": []}
    for _ in bench.times(clusters):
        bench.set_aside(root / "overlays")
        found["render cold"].append(bench.once([PROGRAM, "render"], root))
        found["render unchanged"].append(bench.once([PROGRAM, "render"], root))
        found["check"].append(bench.once([PROGRAM, "check"], root))
    for what, runs in found.items():
        bench.add(f"{what}{kind}", clusters, runs)
    if not kind and clusters == 1_000:
        root.rename(bench.folder / "kustomize")


def _kustomize(bench: Bench) -> None:
    """One process for each overlay: kustomize refuses to build objects of one name together."""
    root = bench.folder / "kustomize"
    if not root.exists():
        fleet.write(root, 1_000)
        bench.once([PROGRAM, "render"], root)
    try:
        program = others.kubectl()
    except others.Unavailable as error:
        print(f"\nNOT MEASURED, kustomize: {error}\n", file=sys.stderr)
        return
    sample = sorted((root / "overlays").iterdir())[:: 1_000 // _SAMPLE]
    runs = [bench.once([program, "kustomize", str(overlay)], root) for overlay in sample]
    figures = Figures(runs)
    note = f"1,000 would take {1_000 * figures.wall:.0f} s, extrapolated from {len(runs)}"
    bench.add("kustomize build, each overlay", 1, runs, note)
    idle = bench.folder / "idle"
    idle.mkdir()
    (idle / "kustomization.yaml").write_text("resources: []\nnamePrefix: a-\n")
    start = [bench.once([program, "kustomize", str(idle)], root) for _ in sample[: bench.runs]]
    bench.add("kustomize build of nothing", 0, start, "what a process of it costs before it does anything")


def _kapitan(bench: Bench, clusters: int) -> None:
    try:
        program = others.kapitan(HERE.parent / ".venv-bench")
    except others.Unavailable as error:
        print(f"\nNOT MEASURED, kapitan: {error}\n", file=sys.stderr)
        return
    root = bench.folder / f"kapitan-{clusters}"
    others.write_inventory(root, clusters)
    bench.once([program, "--version"], root)
    runs = []
    for _ in range(min(3, bench.runs)):
        bench.set_aside(root / "compiled")
        runs.append(bench.once([program, "compile"], root))
    count = sum(path.is_file() for path in (root / "compiled").rglob("*"))
    bench.add("kapitan compile cold", clusters, runs, f"{count:,} files, {os.cpu_count()} processes")


def _goals(bench: Bench) -> Iterator[str]:
    for what, clusters, limit in (
        ("--help", 0, 0.15),
        ("render cold", 1, 0.25),
        ("check", 1, 0.25),
        ("render cold", 1_000, 2.0),
        ("check", 1_000, 1.0),
        ("check", 1_000, 0.5),
        (f"render cold{EVERY_KIND}", 1_000, 2.0),
        (f"check{EVERY_KIND}", 1_000, 1.0),
    ):
        if found := bench.find(what, clusters):
            name = f"{what} of {clusters:,}" if clusters else what
            yield f"{name} in at most {limit} s: {found.wall:.2f} s, {_judged(found.wall, found.wall_min, limit)}"
    commands = ("render cold", "render unchanged", "check")
    for what in (*commands, *(f"{command}{EVERY_KIND}" for command in commands)):
        small, large = bench.find(what, 1_000), bench.find(what, 10_000)
        if small and large:
            factor, least, peak = large.wall / small.wall, large.cpu_min / small.cpu_min, large.peak / _MIB
            judged = _judged(factor, least, 11)
            yield f"{what} of 10,000 at most 11 times 1,000: {factor:.1f} (CPU {least:.1f}), {judged}"
            yield f"{what} of 10,000 below 500 MiB: {peak:.0f} MiB, {_judged(peak, peak, 500)}"
    yield f"check does not import the cluster client: {'missed' if _imports_client(bench) else 'met'}"


def _judged(value: float, best: float, limit: float) -> str:
    if value <= limit:
        return "met"
    return "missed by the median, met by the quietest run" if best <= limit else "missed"


def _imports_client(bench: Bench) -> bool:
    root = bench.folder / "one"
    fleet.write(root, 1)
    bench.once([PROGRAM, "render"], root)
    bench.once([sys.executable, "-X", "importtime", "-m", "renderer", "check"], root)
    bench.log.seek(0)
    return any(line.rstrip().endswith((b" kubernetes", b" kubernetes.client")) for line in bench.log)


def _line(row: Row) -> str:
    one = row.figures
    return (
        f"| {row.what} | {f'{row.clusters:,}' if row.clusters else ''} | {one.wall:.3f} | {one.wall_min:.3f} "
        f"| {one.cpu:.3f} | {one.cpu_min:.3f} | {one.peak / _MIB:.0f} | {row.note} |"
    )


def _machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; {os.cpu_count()} cores, load {load}; {platform.system()} {platform.machine()}"
    )


def _results(rows: Sequence[Row], goals: Sequence[str]) -> dict[str, object]:
    return {
        "machine": _machine(),
        "python": platform.python_version(),
        "rows": [asdict(row) for row in rows],
        "goals": goals,
    }


if __name__ == "__main__":
    sys.exit(main())
