"""Every scenario in tests/cases, played with the whole program."""

from pathlib import Path

import pytest

from tests import scenario

CASES = Path(__file__).with_name("cases")


@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path, pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> None:
    case = scenario.parse(path.read_bytes().decode())
    tools = [request.getfixturevalue(name).parent for name in case.needs]
    played = scenario.play(case, tmp_path, CASES / "_shared", tools=tools)
    if pytestconfig.getoption("update"):
        text = scenario.update(case, played)
        path.write_bytes(text.encode())
        case = scenario.parse(text)
    found = scenario.differences(case, played)
    if found:
        pytest.fail(f"{path.name}\n\n" + "\n".join(found), pytrace=False)
