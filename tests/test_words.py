"""How messages write names, numbers and long texts."""

import pytest

from renderer.words import counted, did_you_mean, listed, plural, shortened, shown


@pytest.mark.parametrize(
    ("text", "expected"), [("", ""), ("12345678", "12345678"), ("123456789", "12345..."), ("1" * 99, "11111...")]
)
def test_shortened(text: str, expected: str) -> None:
    assert shortened(text, 8) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        ("prod", "prod"),
        ("a\nb", r"a\nb"),
        ("\x1b[0m", r"\x1b[0m"),
        ("x" * 61, "x" * 57 + "..."),
        (None, "None"),
    ],
)
def test_shown(value: object, expected: str) -> None:
    assert shown(value) == expected


def test_counted() -> None:
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [plural("pool", count) for count in (0, 1, 2)] == ["pools", "pool", "pools"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", "a"),
        ("ab", "a and b"),
        ("abc", "a, b and c"),
        ("abcd", "a, b, c and d"),
        ("abcde", "a, b, c and 2 more"),
        ("abcdef", "a, b, c and 3 more"),
    ],
)
def test_listed(names: str, expected: str) -> None:
    assert listed(names, 3) == expected
    assert listed(iter(names), 3) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("hanlder", "Did you mean handler?"),
        ("HANDLER", "Did you mean handler?"),
        ("ARGOCD", "Did you mean argoCD?"),
        ("node", ""),
        ("", ""),
    ],
)
def test_did_you_mean(word: str, expected: str) -> None:
    assert did_you_mean(word, ["handler", "argoCD"]) == expected
    assert did_you_mean(word, {"handler": 1, "argoCD": 2}) == expected
