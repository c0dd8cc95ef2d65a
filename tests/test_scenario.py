"""The scenario runner itself: it passes what is right, fails what is not, and rewrites a scenario so that it passes."""

import sys
from pathlib import Path

import pytest

from tests import scenario

# Copies policies/ to overlays/ and says so; `check` ends with 1 where they differ.
PROGRAM = """
import pathlib, sys
pathlib.Path("overlays").mkdir(exist_ok=True)
for path in sorted(pathlib.Path("policies").iterdir()):
    copy = "overlays" / pathlib.Path(path.name)
    if sys.argv[1] == "check":
        if copy.read_bytes() != path.read_bytes():
            sys.exit(f"{path.name} is stale")
    else:
        copy.write_bytes(path.read_bytes())
        print("wrote", path.name)
"""

GOOD = """\
A policy is copied, and an edit makes the copy stale.
-- in/policies/a.yaml --
qps: 1
-- in/README --
prose
-- run --
kubevirt-policy render
-- stdout --
wrote a.yaml
-- in/policies/a.yaml --
qps: 2
-- run --
kubevirt-policy check
-- exit --
1
-- stderr --
a.yaml is stale
-- out/overlays/a.yaml --
qps: 1
"""

LAST = "-- out/overlays/a.yaml --\nqps: 1\n"


def play(text: str, folder: Path) -> tuple[scenario.Scenario, scenario.Played]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    case = scenario.parse(text)
    return case, scenario.play(case, folder, folder / "shared", [sys.executable, str(program)])


def differences(text: str, folder: Path) -> list[str]:
    return scenario.differences(*play(text, folder))


def test_passes_what_is_right(tmp_path: Path) -> None:
    assert differences(GOOD, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("-- exit --\n1\n", "", "exit of `kubevirt-policy check`"),
        ("wrote a.yaml", "wrote b.yaml", "stdout of `kubevirt-policy render`"),
        ("-- stdout --\nwrote a.yaml\n", "", "stdout of `kubevirt-policy render`"),
        ("a.yaml is stale\n", "", "stderr of `kubevirt-policy check`"),
        (LAST, f"-- out/overlays/b.yaml --\n{LAST}", "overlays/b.yaml: missing"),
        (LAST, "", "overlays/a.yaml: not expected"),
        ("a.yaml --\nqps: 1\n-- in", "a.yaml --\nqps: 3\n-- in", "overlays/a.yaml: other content"),
        (LAST, LAST.replace(" --\n", " (crlf) --\n"), "overlays/a.yaml: other content"),
        (LAST, f"-- out/README (missing) --\n{LAST}", "README: not expected"),
        (LAST, f"-- out/README --\n{LAST}", "README: other content"),
    ],
)
def test_fails_what_is_wrong(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    assert old in GOOD
    [found] = differences(GOOD.replace(old, new, 1), tmp_path)
    assert found.startswith(complaint)


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        pytest.param("pathlib.Path('schemas').write_text('')", "schemas: not expected", id="file elsewhere"),
        pytest.param("pathlib.Path('overlays/old').mkdir()", "overlays/old/: not expected", id="empty folder"),
        pytest.param("pathlib.Path('README').write_text('')", "README: other content", id="input changed"),
        pytest.param("pathlib.Path('README').unlink()", "README: missing", id="input removed"),
        pytest.param("pathlib.Path('overlays/b').symlink_to('a.yaml')", "overlays/b: not expected", id="link"),
    ],
)
@pytest.mark.parametrize("files", ["", "files: some\n"])
def test_fails_where_the_program_does_more(code: str, complaint: str, files: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{PROGRAM}\nif sys.argv[1] == 'render': {code}\n")
    case = scenario.parse(files + GOOD)
    played = scenario.play(case, tmp_path, tmp_path, [sys.executable, str(program)])
    found = [line.split("\n")[0] for line in scenario.differences(case, played)]
    assert found == ([] if files and complaint.startswith("overlays/") else [complaint])


def test_compares_named_overlays_only_where_asked(tmp_path: Path) -> None:
    text = "files: some\n" + GOOD.replace("-- run --", "-- in/policies/b.yaml --\nqps: 1\n-- run --", 1)
    text = text.replace("wrote a.yaml\n", "wrote a.yaml\nwrote b.yaml\n")
    (tmp_path / "right").mkdir()
    (tmp_path / "wrong").mkdir()
    assert differences(text, tmp_path / "right") == []
    other = text.replace("-- out/overlays/a", "-- out/overlays/c")
    assert differences(other, tmp_path / "wrong") == ["overlays/c.yaml: missing"]


@pytest.mark.parametrize("files", ["", "files: some\n"])
def test_update_writes_what_came(files: str, tmp_path: Path) -> None:
    wrong = (files + GOOD).replace("qps: 1\n-- in/README", "qps: 7\n-- in/README")
    for expected in ("-- exit --\n1\n", "wrote a.yaml\n", "a.yaml is stale\n"):
        wrong = wrong.replace(expected, "")
    case, played = play(wrong, tmp_path)
    text = scenario.update(case, played)
    assert text == (files + GOOD).replace("qps: 1", "qps: 7")
    assert scenario.differences(scenario.parse(text), played) == []


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"", None),
        (b"a\nb\n", None),
        ("Grüße\u2028\n".encode(), None),
        (b"a\r\nb\r\n", "crlf"),
        (b"a\nb", "no-eol"),
        (b"a\r\nb\n", "base64"),
        (b"a\xff\n", "base64"),
        (b"-- run --\n", "base64"),
        (b"\x00", "no-eol"),
        (scenario.Link("../a"), "link"),
    ],
)
def test_update_keeps_every_byte(content: scenario.Content, form: str | None) -> None:
    before = scenario.parse("-- run --\nkubevirt-policy render\n")
    text = scenario.update(before, scenario.Played([scenario.Result()], {}, {"overlays/a": content}))
    marker = f"-- out/overlays/a ({form}) --\n" if form else "-- out/overlays/a --\n"
    assert marker in text
    assert scenario.parse(text).out == {"overlays/a": content}


def test_input_comes_in_every_form(tmp_path: Path) -> None:
    text = """\
-- in/policies/a (crlf) --
x
-- in/policies/b (no-eol) --
x
-- in/policies/c (base64) --
/w==
-- in/d (link) --
policies/a
-- run --
kubevirt-policy render
"""
    _, played = play(text, tmp_path)
    expected = {"policies/a": b"x\r\n", "policies/b": b"x", "policies/c": b"\xff", "d": scenario.Link("policies/a")}
    assert {path: played.files[path] for path in expected} == expected


def test_helper_lines_move_copy_and_remove(tmp_path: Path) -> None:
    text = """\
use: base
-- in/policies/b --
x
-- run --
kubevirt-policy render
-- stdout --
wrote a
wrote b
-- run --
mv policies/b policies/c
cp policies/c notes/c
rm overlays/b
kubevirt-policy render
-- stdout --
wrote a
wrote c
-- run --
rm notes/c
cd policies/..
kubevirt-policy check
-- out/overlays/a --
shared
-- out/overlays/c --
x
"""
    (tmp_path / "shared/base/policies").mkdir(parents=True)
    (tmp_path / "shared/base/policies/a").write_text("shared\n")
    assert differences(text, tmp_path) == []


def test_the_program_sees_the_settings_of_its_line_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVIRT_POLICY_SECRET", "x")
    case = scenario.parse("-- run --\nA='b c' kubevirt-policy\n-- run --\nkubevirt-policy\n")
    program = [sys.executable, "-c", "import os; print(*os.environ.items())"]
    played = scenario.play(case, tmp_path, tmp_path, program)
    first, second = (result.stdout.decode() for result in played.results)
    assert "('A', 'b c')" in first
    assert "'A'" not in second
    assert "SECRET" not in first


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("prose\n", id="no run"),
        pytest.param("-- in/a --\n-- run --\nkubevirt-policy\n-- in/b --\n", id="input after the last run"),
        pytest.param("-- exit --\n1\n-- run --\nkubevirt-policy\n", id="result before a run"),
        pytest.param("-- run --\nkubevirt-policy\n-- stdot --\n", id="unknown section"),
        pytest.param("-- in/a (gzip) --\n-- run --\nkubevirt-policy\n", id="unknown form"),
        pytest.param("-- run --\nls\nkubevirt-policy\n", id="unknown helper"),
        pytest.param("-- run --\nls\n", id="no command"),
        pytest.param("use: nowhere\n-- run --\nkubevirt-policy\n", id="unknown shared folder"),
    ],
)
def test_refuses_a_scenario_that_is_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(scenario.ScenarioError):
        play(text, tmp_path)
