"""An expression, parsed by a real PromQL parser, as the little that checks ask of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

from renderer.promql import drops, durations, labels, needs, nodes, numbers, origins, ranges, regexes, syntax
from renderer.promql.locating import SYNTAX, locate
from renderer.promql.syntax import Feature
from renderer.promql.tokens import Token, tokens

PARSER_KNOWS = (3, 16)
"""The newest minor release of Prometheus whose syntax is followed, but for ranges that are computed."""
MAX_DEEPENING = 250
_OPERATORS = "( [ + - * / % ^ == != > < >= <= </ >/ and or unless atan2"
_DEEPENING = frozenset(_OPERATORS.split())
_COMPUTED = re.compile(r"unexpected character inside brackets: '([-+*/%^(srm])'")
"""What the parser says of a range that is an expression (`[5m * 2]`, `[step()]`)."""
_COMPUTED_DURATIONS = "arithmetic in durations"
_DURATIONS = ("step", "range", "min_of", "max_of")
"""Functions that give one."""
_COMPUTED_SINCE = (3, 14)  # prometheus CHANGELOG 3.14.0, #19033
_UNKNOWN = re.compile(r"unknown function with name '([^']*)'")
_KEYWORDS = """\
sum avg count min max group stddev stdvar topk bottomk count_values quantile limitk limit_ratio by without on ignoring
group_left group_right and or unless bool offset atan2 fill fill_left fill_right"""
_NO_SAMPLES = {"MatrixSelector": "matrix", "SubqueryExpr": "matrix", "StringLiteral": "string"}
_NO_FUNCTIONS = frozenset(_KEYWORDS.split())
"""What may stand before a bracket and is no function."""
_EDGES = ("start", "end")
"""After `@`, the edges of the time that is asked for; functions of those names came with Prometheus 3.12."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the text at `offset`; `needs` is the release whose newer syntax it may be."""

    message: str
    offset: int
    length: int
    needs: tuple[int, int] | None = None
    feature: str = ""
    """The name of that syntax, where it is known."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is called, and where its name stands."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Window:
    """A range that a function looks back over, in seconds; `step` where it is a subquery that gives one."""

    function: str
    seconds: float
    step: float | None
    subquery: bool
    offset: int
    length: int
    beyond: bool = False
    """Whether samples from outside the range count, as with `anchored` and `smoothed`."""
    nested: bool = False
    """Whether a subquery around it asks again and again."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What an expression is made of; with a fault, only its tokens are known."""

    text: str
    faults: tuple[Fault, ...] = ()
    calls: tuple[Call, ...] = ()
    features: tuple[Feature, ...] = ()
    metrics: frozenset[str] = frozenset()
    windows: tuple[Window, ...] = ()
    tree: Any = field(default=None, compare=False, repr=False)

    def loses(self, label: str, without: AbstractSet[str] = frozenset()) -> bool:
        """Whether samples of the result surely lack the label; `without` are series that are known to lack it."""
        return self.tree is not None and labels.loses(self.tree, label, without)

    def origins(self, label: str) -> set[str]:
        """The metrics whose label reaches the result as it is, as far as it can be told."""
        return origins.origins(self.tree, label) if self.tree is not None else set()

    @property
    def asked(self) -> dict[str, frozenset[str]]:
        """By label, the values and patterns that selectors ask for, as `="a"` and `=~"b.*"`."""
        found: dict[str, set[str]] = {}
        for (token, operator), (_, value) in pairwise(pairwise(tokens(self.text))):
            if operator.text in ("=", "=~") and token.kind in ("name", "string") and value.kind == "string":
                found.setdefault(token.text.strip("\"'`"), set()).add(f"{operator.text}{value.text[1:-1]}")
        return {label: frozenset(values) for label, values in found.items()}

    @property
    def needs(self) -> frozenset[str]:
        """The metrics each of which has to have samples, or the result has none."""
        return needs.needs(self.tree) if self.tree is not None else frozenset()

    def drops(self, labels: Iterable[str]) -> list[str]:
        """The parts that drop series which those labels tell apart, each once, as they are written."""
        return list(dict.fromkeys(drops.drops(self.tree, frozenset(labels)))) if self.tree is not None else []

    @property
    def leaves_ratio(self) -> list[str]:
        """What may make more than 1 of shares, in words that follow a subject."""
        return ranges.leaves(self.tree) if self.tree is not None else []

    @property
    def may_be_nan(self) -> bool:
        """Whether a division by zero may reach the result."""
        return self.tree is not None and numbers.unguarded(self.tree)

    @property
    def constant(self) -> bool:
        """Whether it reads neither series nor the clock, and is no plain `vector(…)`."""
        return self.tree is not None and numbers.constant(self.tree)

    @property
    def start(self) -> int:
        """Where it begins, beyond blanks and comments."""
        return next((token.start for token in tokens(self.text)), 0)

    @property
    def kind(self) -> str:
        """`matrix` or `string` where that is the result; empty where it is samples."""
        return _NO_SAMPLES.get(nodes.kind(nodes.bare(self.tree)), "")


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The expression; the functions that it calls are not judged here, as that depends on the release."""
    found = list(tokens(text))
    calls = tuple(_calls(found))
    if (deep := _too_deep(found)) is not None:
        return Expression(text, faults=(deep,), calls=calls)
    refused = chain(durations.refused(found), regexes.refused(found), syntax.refused(found))
    wrong = tuple(Fault(said, token.start, len(token.text)) for token, said in refused)
    if wrong:
        return Expression(text, faults=wrong, calls=calls)
    readable = syntax.readable(text, found)
    tree, message = _parsed(readable)
    if message:
        unknown = _UNKNOWN.search(message) is not None
        return Expression(text, faults=() if unknown else (_fault(text, readable, message, found),), calls=calls)
    features = tuple(syntax.features(found))
    return Expression(text, (), calls, features, frozenset(_metrics(tree)), tuple(_windows(found, tree)), tree)


def _too_deep(found: list[Token]) -> Fault | None:
    """The parser recurses in native code, where deep nesting would end the process; so does what walks the result."""
    deepening = [token for token in found if token.text in _DEEPENING]
    if len(deepening) <= MAX_DEEPENING:
        return None
    first = deepening[MAX_DEEPENING]
    message = f"the expression has more than {MAX_DEEPENING} operators and brackets: split it into records"
    return Fault(message, first.start, len(first.text))


def _check(text: str) -> str:
    """What the parser says of a text; nothing where it is valid."""
    return _parsed(syntax.readable(text, list(tokens(text))))[1]


def _parsed(readable: str) -> tuple[Any, str]:
    """The tree, or what the parser says of the text."""
    import promql_parser

    try:
        return promql_parser.parse(readable), ""
    except ValueError as error:
        return None, str(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the native code's own, which nothing exports
            raise
        return None, f"the parser cannot read this: {error}"


def _fault(text: str, readable: str, message: str, found: list[Token]) -> Fault:
    if (newer := _newer(message, found)) is not None:
        return newer
    # Many beginnings are tried: where nothing is replaced in the whole, nothing is in them.
    place = locate(text, message, _check if readable != text else lambda beginning: _parsed(beginning)[1])
    if message != SYNTAX:
        return Fault(message, *place)
    return Fault("this is not PromQL", *place, needs=(PARSER_KNOWS[0], PARSER_KNOWS[1] + 1))


def _computes(first: str, second: str = "") -> bool:
    """Whether these tokens begin a duration that is computed."""
    return first == "(" or (first in _DURATIONS and second == "(")


def _newer(message: str, found: list[Token]) -> Fault | None:
    """Ranges and offsets that are computed, which the parser refuses."""
    for number, token in enumerate(found[:-1]):
        behind = [one.text for one in found[number + 1 : number + 4] if one.text not in ("-", "+")]
        if token.text.lower() == "offset" and behind and _computes(*behind[:2]):
            words = "an offset that is computed is no PromQL that this tool can read"
            return Fault(words, token.start, len(token.text), _COMPUTED_SINCE, _COMPUTED_DURATIONS)
    if computed := _COMPUTED.match(message):
        inside = next((number for number, token in enumerate(found) if token.text == "["), 0)
        token = next((one for one in found[inside:] if one.text.startswith(computed[1])), found[inside])
        words = "a range that is computed is no PromQL that this tool can read"
        return Fault(words, token.start, len(token.text), _COMPUTED_SINCE, _COMPUTED_DURATIONS)
    return None


def _calls(found: list[Token]) -> Iterator[Call]:
    before = ""
    for token, after in pairwise(found):
        edge = before == "@" and token.text.lower() in _EDGES
        if token.kind == "name" and after.text == "(" and token.text.lower() not in _NO_FUNCTIONS and not edge:
            yield Call(token.text, token.start)
        before = token.text


def _metrics(tree: Any) -> Iterator[str]:
    for node in nodes.walk(tree):
        if nodes.kind(node) == "VectorSelector" and (name := nodes.metric(node)):
            yield name


def _windows(found: list[Token], tree: Any) -> Iterator[Window]:
    """Each range with the place of its brackets: both are met in the order of the text."""
    opening = [index for index, token in enumerate(found) if token.text == "["]
    ranges = list(_ranges(tree, "", nested=False))
    for number, (function, node, nested) in enumerate(ranges):
        index = opening[number] if len(opening) == len(ranges) else 0
        end = next((token.end for token in found[index:] if token.text == "]"), found[index].end)
        subquery = nodes.kind(node) == "SubqueryExpr"
        step = node.step.total_seconds() if subquery and node.step is not None else None
        start, seconds = found[index].start, node.range.total_seconds()
        beyond = syntax.selects_beyond(found, index)
        yield Window(function, seconds, step, subquery, start, end - start, beyond=beyond, nested=nested)


def _ranges(node: Any, function: str, *, nested: bool) -> Iterator[tuple[str, Any, bool]]:
    kind = nodes.kind(node)
    function = nodes.function(node) or function
    for child in nodes.children(node):
        inner = function if kind in ("Call", "ParenExpr") else ""
        yield from _ranges(child, inner, nested=nested or kind == "SubqueryExpr")
    if kind in ("MatrixSelector", "SubqueryExpr"):
        yield function, node, nested
