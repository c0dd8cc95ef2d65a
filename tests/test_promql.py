"""PromQL: where faults are, which windows and metrics there are, and which labels are lost."""

from __future__ import annotations

import pytest

from renderer.promql import parse, unfolded
from renderer.releases import prometheus

# The expression, with the place of the fault between ⟦ and ⟧, and what is said of it.
FAULTS = [
    ("rate⟦(⟧x[1m]", "unclosed"),
    ("sum by ⟦(⟧a (x)", "unclosed"),
    ("sum(x) ⟦)⟧", "unexpected"),
    ("(x⟦]⟧", ""),
    ("x{a=~⟦'['⟧}", "illegal regex"),
    ('x{a=~"ok"} + y{b!~⟦"(c"⟧}', "illegal regex"),
    ("x ⟦~⟧! 2", "unexpected character"),
    ("x ⟦?⟧ y", "unexpected character"),
    ("a ⟦b⟧", "not PromQL"),
    ("x + +⟦ /⟧ y", "not PromQL"),
    ("1 ⟦+⟧", "not PromQL"),
    ("x{a=⟦b⟧}", "label matching"),
    ("⟦rate⟧(x)", "expected type matrix"),
    ("x + ⟦clamp⟧(y, 1)", "3 argument"),
    ("rate(x[5m]) / (y + ⟦rate⟧(z)) - rate(x[1m])", "expected type matrix"),
    ("clamp(x, 0, 1) + ⟦clamp⟧(abs(y), 1)", "3 argument"),
    ("x[5m] + ⟦1⟧", "binary expression"),
    ("other{a='b'} + up{⟦a⟧}", "label matcher"),
    ('good{x="y"} + up{__name__=⟦"x"⟧}', "metric name"),
    ("# (\nup + rate(up[⟦30m1h⟧])", "valid duration"),
    ("x + sum(⟦1⟧)", "expected type vector"),
    ("# a\nx + (sum(up) offset ⟦5m⟧)", "offset modifier"),
    ("x ⟦offset⟧ (5m * 2)", "computed"),
    ("x ⟦offset⟧ -step()", "computed"),
    ("sum(x) ⟦smoothed⟧", "not PromQL"),
    ("x @ ⟦1e30⟧", "beyond the time"),
    ("x @ -⟦9223372036854775808⟧", "beyond the time"),
    ("rate(x[⟦-⟧5m])", "no time"),
    ('x{a="b" ⟦or⟧ a="c"}', "between matchers"),
    ('⟦"⟧abc', "quoted string"),
    ("x offset ⟦NaN⟧", "no duration"),
    ("x offset -⟦Inf⟧", "no duration"),
    ("x offset ⟦1e30⟧", "292 years"),
    ("x offset -⟦1000000000y⟧", "292 years"),
    ("rate(x[⟦300y⟧])", "292 years"),
    ("rate(x[⟦0x7fffffffffffff⟧])", "292 years"),
    ("rate(x[⟦" + "9" * 5_000 + "d⟧])", "292 years"),
    ("rate(x[⟦0x" + "f" * 5_000 + "⟧])", "292 years"),
    ("max_over_time(x[5m:⟦1e30⟧])", "292 years"),
    ("max_over_time(x[5m: ⟦0⟧])", "no time"),
    ("rate(x[⟦0s⟧])", "no time"),
    ("rate(x[5m ⟦*⟧ 2])", "computed"),
    ("rate(x[0 ⟦+⟧ 5m])", "computed"),
    ("rate(x[⟦step⟧()])", "computed"),
]


@pytest.mark.parametrize(("marked", "message"), FAULTS)
def test_place_of_a_fault(marked: str, message: str) -> None:
    before, _, rest = marked.partition("⟦")
    wrong, _, after = rest.partition("⟧")
    start, wrong = len(before) + len(wrong) - len(wrong.lstrip()), wrong.strip()
    (fault,) = parse(before + rest.replace("⟧", "")).faults
    assert (fault.offset, fault.length) == (start, len(wrong)), after
    assert message in fault.message


def test_what_is_read() -> None:
    found = parse(
        'rate(x{a="b"}[5m]) + max_over_time(rate({__name__="y"}[1m])[10m:30s]) or label_replace(z, "a", "", "", "")'
    )
    windows = [(one.function, one.seconds, one.step, found.text[one.offset :][: one.length]) for one in found.windows]
    assert found.metrics == {"x", "y", "z"}
    assert windows == [
        ("rate", 300, None, "[5m]"),
        ("rate", 60, None, "[1m]"),
        ("max_over_time", 600, 30, "[10m:30s]"),
    ]
    assert [call.name for call in found.calls] == ["rate", "max_over_time", "rate", "label_replace"]


@pytest.mark.parametrize("text", ["foo(x)", "integral(x[5m])", "sum by (a) (ratee(x))"])
def test_unknown_functions_are_no_matter_of_syntax(text: str) -> None:
    assert parse(text).faults == ()


NUMBERS_OF_ALL_KINDS = (
    "0",
    "1",
    "-1",
    "1e9",
    "1e10",
    "1e308",
    "1e309",
    "NaN",
    "Inf",
    "5m",
    "290y",
    "99999999999999999999y",
)
PLACES = (
    "x offset {}",
    "x offset - {}",
    "rate(x[{}])",
    "rate(x[5m:{}])",
    "rate(x[{}:1m])",
    "x @ {}",
    "topk({}, x)",
    "{}",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", NUMBERS_OF_ALL_KINDS)
def test_numbers_of_all_kinds_end_no_run(place: str, number: str, capfd: pytest.CaptureFixture[str]) -> None:
    parse(place.format(number))
    assert capfd.readouterr() == ("", "")  # a panic of the parser writes to stderr by itself


FEATURES = {
    "group by (a) (x)": ["group()"],
    "rate(x[1h30m:1h5m])": ["durations of several units"] * 2,
    "x atan2 y": ["atan2"],
    "x @ start()": ["the modifier @"],
    "x @ -5": ["the modifier @"],
    "x offset -5m": ["a negative offset"],
    "x > 1_000.0_5": ["digits in groups"],
    "limitk(1, x)": ["limitk()"],
    "limit_ratio by (a) (0.5, x)": ["limit_ratio()"],
    "time() - x > 5m": ["durations as numbers"],
    "x offset 300": ["numbers as durations"],
    '{"a.b", c="d"}': ["names in quotes"],
    'sum by (a, "b.c") (x)': ["names in quotes"],
    "rate(x[5m] anchored)": ["anchored"],
    "x{} offset 5m smoothed": ["smoothed"],
    "x[5m] @ 7 smoothed": ["the modifier @", "smoothed"],
    "a + on (b) fill_left(0) fill_right(1) c": ["fill_left()", "fill_right()"],
    "a + fill (0) b": ["fill()"],
    "x </ 5": ["</"],
    "x >/5": [">/"],
    "sum by (smoothed, group) (anchored) + group + limitk + fill": [],
    'label_join(x, "a", ",", "b") and y{a="1_0"} > 1.5e3': [],
    "max_over_time(x[5m:1m] offset 5m)": [],
}


@pytest.mark.parametrize("text", FEATURES)
def test_syntax_that_came_later(text: str) -> None:
    assert parse(text).faults == ()
    assert sorted(feature.name for feature in parse(text).features) == sorted(FEATURES[text])


def test_every_such_syntax_has_its_release() -> None:
    assert {name for names in FEATURES.values() for name in names} == set(prometheus.SYNTAX) - {
        "arithmetic in durations"
    }


def test_the_parser_knows_every_function_of_the_table() -> None:
    """One that it does not know would leave windows and labels unseen."""
    texts = {name: f"{name}(rate(x[5m])[10m:1m])" for name in prometheus.FUNCTIONS}
    assert [name for name, text in texts.items() if not parse(text).faults and not parse(text).windows] == []
    assert parse("holt_winters(x[5m], 0.5, 0.5) + holt_winters").windows[0].seconds == 300


def test_what_words_mean_beside_later_syntax() -> None:
    assert parse("sum(rate(x[5m] anchored)) </ 5").loses("instance")
    assert parse("smoothed </ 5").drops(["instance"]) == []


def test_edges_of_the_time_are_no_functions() -> None:
    assert [call.name for call in parse("x @ start() + y @ END () + end()").calls] == ["end"]


DEEP = {
    "brackets": "(" * 60_000,
    "nested": "(" * 30_000 + "x" + ")" * 30_000,
    "calls": "abs(" * 10_000 + "x" + ")" * 10_000,
    "signs": "-" * 60_000 + "x",
    "sums": "x" + " + x" * 20_000,
    "sets": "x" + " or x" * 10_000,
    "powers": "x" + "^x" * 20_000,
    "subqueries": "x" + "[5m:1m]" * 9_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_expressions(text: str) -> None:
    """A fault, at once: neither a native stack nor ours overflows."""
    (fault,) = parse(text).faults
    assert "split it" in fault.message


@pytest.mark.parametrize("text", ["abs(" * 199 + "x" + ")" * 199, "x" + " + x" * 199, "-" * 199 + "x"])
def test_as_deep_as_may_be(text: str) -> None:
    assert parse(text).faults == ()
    assert not parse(text).loses("instance")


LABELS = [
    ("sum(x)", True),
    ("count(x) by (node)", True),
    ("avg without (instance) (x)", True),
    ("a / on (node) b", True),
    ("a / ignoring (instance) b", True),
    ("scalar(x)", True),
    ("vector(1)", True),
    ("1", True),
    ("sum(x) and on () y", True),
    ("sum(sum by (instance) (x))", True),
    ("clamp(sum(x), 0, 1)", True),
    ("-sum(x)", True),
    ("x", False),
    ("sum by (instance) (x)", False),
    ("avg without (cpu) (x)", False),
    ("topk(3, x)", False),
    ("1 - avg by (instance) (x)", False),
    ("sum(x) or sum by (instance) (y)", True),
    ("x > 0.5 or vector(0)", True),
    ("absent(x)", True),
    ('absent(x{instance="a"})', False),
    ("a * on (node) group_left (instance) b", False),
    ("a * on (instance) b", False),
    ("a / scalar(sum(b))", False),
    ('label_replace(sum by (node) (x), "instance", "$1", "node", "(.+)")', False),
    ('count_values("instance", x)', False),
    ("y unless on (instance) sum(x)", False),
    ('label_replace(x, "instance", "", "", "")', True),
    ('label_replace(x, "instance", "$1", "node", "(.*)")', False),
    ('x{instance=""}', True),
    ("(scalar(sum(x)) + 1) * y", False),
    ("sum(x) * on () group_right () y", False),
    ("y * on () group_left () sum(x)", False),
    ("a * on (node) group_left (instance) sum(b)", True),
    ("max_over_time(sum(x)[5m:1m])", True),
]


@pytest.mark.parametrize(("text", "lost"), LABELS)
def test_lost_label(text: str, lost: bool) -> None:
    assert parse(text).loses("instance") is lost


NUMBERS = {
    "a / b": True,
    "a % b": True,
    "clamp(a / b, 0, 1)": True,
    "max by (instance) (1 - a / on (instance) b)": True,
    "a / 0": True,
    "a / (b + 1)": True,
    "c or a / b": True,
    "a / b and c": True,
    "a / 100": False,
    "a / (2)": False,
    "a / (b > 0)": False,
    "a / b >= 0": False,
    "clamp(a / b, 0, 1) >= 0": False,
    "c and a / b": False,
    "count(a / b)": False,
    "rate(a[5m]) * 2": False,
    "a / (b >= 0)": True,
    "a / (b > -1)": True,
    "a / (b > bool 0)": True,
    "a / (b <= 1)": True,
    "a / (b == 0)": True,
    "a / (5 > b)": True,
    "a / (0 < b)": False,
    "a / (b < 0)": False,
    "a / (b != 0)": False,
    "a / -(b > 0)": False,
    "a / on (instance) count by (instance) (b)": False,
    "a / group by (instance) (b)": False,
    "sum_over_time(a[5m]) / count_over_time(a[5m])": False,
    "a / clamp_min(b, 1)": False,
    "a / clamp_min(b, 0)": True,
    "a / pi() + b / time()": False,
    "max by (instance) (a) / max by (instance) (b > 0)": False,
    "a / ((b > 0) * 2)": False,
    "(a / b) and (b > 0)": False,
    "a / b unless b == 0": False,
    "a / b unless c == 0": True,
    "a / b and b >= 0": True,
    "a / avg_over_time(b[5m])": True,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_a_division_by_zero_that_reaches_the_result(text: str) -> None:
    assert parse(text).may_be_nan is NUMBERS[text]


RANGES: dict[str, list[str]] = {
    "sum by (instance) (rate(node_cpu_seconds_total[1m]))": ["adds up rates"],
    "sum by (instance) (x) * 100": ["multiplies by 100", "adds up what it reads"],
    "100 * (1 - x)": ["multiplies by 100"],
    "clamp_max(x * 100, 100)": ["multiplies by 100"],
    "clamp(sum by (instance) (x), 0, 2) / 1": ["adds up what it reads"],
    "sum by (instance) (x) / 0.5": ["divides by 0.5", "adds up what it reads"],
    "100 * a / (b > 0)": ["multiplies by 100"],
    "count by (instance) (x)": ["counts series"],
    "instance:node_cpu:rate:sum": ["reads instance:node_cpu:rate:sum, which is no share"],
    "avg by (instance) (node_load1)": ["reads node_load1, which is no share"],
    "node_memory_MemFree_bytes or x": ["reads node_memory_MemFree_bytes, which is no share"],
    "rate(node_network_receive_bytes_total[5m])": ["reads node_network_receive_bytes_total, which is no share"],
    "node_cpu_seconds_total": ["reads node_cpu_seconds_total, which only grows"],
    "increase(x[5m])": ["counts up over its window"],
    "count_over_time(x[5m])": ["counts samples"],
    'x / on (instance) y + sum by (instance) (z{a="b/c"})': ["adds up what it reads"],
    "rate(node_pressure_cpu_waiting_seconds_total[1m])": [],
    "1 - avg by (instance) (rate(node_cpu_seconds_total[1m]))": [],
    "sum by (instance) (x) / count by (instance) (x)": [],
    "sum by (instance) (x) / 8": [],
    "sum by (instance) (x) / scalar(y)": [],
    "clamp(sum by (instance) (x), 0, 1)": [],
    "clamp_max(node_load1, 1)": [],
    "sum by (instance) (x) <= 1": [],
    "node_load1 > bool 8": [],
    "histogram_quantile(0.9, sum by (instance, le) (rate(x_bucket[5m])))": [],
    "x * 0.5": [],
    "group by (instance) (x)": [],
    "x unless node_load1 > 8": [],
    "x / (sum by (instance) (y) > 0)": [],
}


@pytest.mark.parametrize("text", RANGES)
def test_what_leaves_the_range_of_a_share(text: str) -> None:
    assert parse(text).leaves_ratio == RANGES[text]


DROPS: dict[str, list[str]] = {
    "a > 0.5": ["> without bool"],
    "0.5 != a": ["!= without bool"],
    "clamp(a < 1, 0, 1)": ["< without bool"],
    "a > on (instance) b": ["> without bool"],
    "1 - topk(1, a)": ["topk()"],
    "topk without (instance) (1, a)": ["topk()"],
    "limitk(1, a)": ["limitk()"],
    "a == a": [],
    "(a / b) == (a / b)": [],
    "a != NaN": [],
    "a < Inf": [],
    'avg by (instance) (rate(a{node="x"}[5m]))': ['node="x"'],
    '(a > 0.7) or b{instance="x"}': ["> without bool", 'instance="x"'],
    "a and on (instance) (b > 1)": ["> without bool"],
    "a > bool 0.5": [],
    "a >= 0": [],
    "0 <= a": [],
    "clamp(a / (b > 0), 0, 1) >= 0": [],
    "topk by (instance) (1, a)": [],
    "topk without (cpu) (1, a)": [],
    "avg by (instance) (rate(a[5m]) < 1.5)": [],
    "(a > 0.7) or a * 0": [],
    "a unless on () b > 1": [],
    'a * scalar(b{node="x"})': [],
    'a{node="", instance=~"x"}': [],
}


@pytest.mark.parametrize("text", DROPS)
def test_what_drops_series(text: str) -> None:
    assert parse(text).drops(("instance", "node")) == DROPS[text]


ORIGINS = {
    "1 - avg by (instance) (rate(a[5m]))": {"a"},
    "a / b": {"a", "b"},
    "a and b": {"a"},
    "a or b": {"a", "b"},
    "a * on (instance) group_left (node) b": {"a"},
    "a * on (pod) group_left (instance) b": {"b"},
    "b * on (pod) group_right (instance) a": {"b"},
    "a * scalar(b)": {"a"},
    'label_replace(a, "instance", "$1", "node", "(.+)")': set(),
    'label_join(a, "instance", "", "node")': set(),
    'label_replace(a, "node", "$1", "instance", "(.+)")': {"a"},
    "sum(a)": set(),
}


@pytest.mark.parametrize("text", ORIGINS)
def test_where_a_label_comes_from(text: str) -> None:
    assert parse(text).origins("instance") == ORIGINS[text]


NEEDS = {
    "clamp(rate(a[5m]), 0, 1)": {"a"},
    "a or b": set(),
    "a or a * b": {"a"},
    "a unless b": {"a"},
    "a and on (instance) b": {"a", "b"},
    'a{x=" or "} / scalar(b)': {"a"},
    "absent(a)": set(),
    "max_over_time(sum by (instance) (a)[5m:1m]) + 1": {"a"},
}


@pytest.mark.parametrize("text", NEEDS)
def test_what_it_cannot_do_without(text: str) -> None:
    assert parse(text).needs == NEEDS[text]


UNFOLDED = {
    "a:b": "(x)",
    "clamp(a:b, 0, 1) + a:c": "clamp((x), 0, 1) + (y + (x))",
    'a:b{c="d"}': "(x)",
    "a:b offset 5m": "(x)",
    "a:b @ end() - 1": "(x) - 1",
    "a:b offset -5m @ 10": "(x)",
    "avg_over_time(a:b[5m])": "avg_over_time((x)[5m:])",
    'avg_over_time(a:b{c="d"}[5m:1m] offset 1m)': "avg_over_time((x)[5m :1m])",
    '{__name__="a:b"}': "(x)",
    '{__name__="a:b", c="d"}': '{__name__="a:b", c="d"}',
    "z:z + a:bc": "z:z + a:bc",
    'label_replace(a:b, "a:c", "$1", "d", "e")': 'label_replace((x), "a:c", "$1", "d", "e")',
}


@pytest.mark.parametrize("text", UNFOLDED)
def test_records_in_an_expression(text: str) -> None:
    found = unfolded(text, {"a:b": "x", "a:c": "y + a:b"})
    assert found.replace("\n", "") == UNFOLDED[text]
    assert parse(found).faults == ()


def test_records_that_read_themselves() -> None:
    assert len(unfolded("a:b", {"a:b": "a:b + a:b" * 100})) < 100_000


CONSTANTS = {
    "-1": True,
    "(1 + 2) * pi()": True,
    "1 > bool 2": True,
    "vector(0) > 1": True,
    "vector(1)": False,
    "time() > 5": False,
    "null": False,
    "a * 0": False,
}


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants(text: str) -> None:
    assert parse(text).constant is CONSTANTS[text]
