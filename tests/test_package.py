"""The wheel, built by way of the sdist, holds the whole package and both commands."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]


def test_wheel_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [entry_points] = [archive.read(name).decode() for name in names if name.endswith("/entry_points.txt")]
    package = {path for path in (ROOT / "renderer").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {name for name in names if ".dist-info/" not in name} == {str(path.relative_to(ROOT)) for path in package}
    assert "kubevirt-policy = renderer.__main__:main" in entry_points
    assert "kubectl-kubevirt_policy = renderer.__main__:main" in entry_points
    assert any(name.endswith("/licenses/LICENSE") for name in names)
