"""How a rule is rendered."""

from __future__ import annotations

import pytest

from renderer.kinds.rule_spec import Rule

EXPRESSIONS = {
    "blanks": ("\n  sum(a)  \n  / 2\t\n", "sum(a)\n  / 2"),
    "a line separator in a text": ('a{b="x\u2028\u0085y"}', 'a{b="x\u2028\u0085y"}'),
    "a form feed at the end of a text": ('a{b="x \x0b\x0c y"}', 'a{b="x \x0b\x0c y"}'),
    "lines between backticks": ("a{b=`x  \ny`}  ", "a{b=`x  \ny`}"),
}


@pytest.mark.parametrize(("given", "rendered"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expression(given: str, rendered: str) -> None:
    assert Rule(record="a:b", expr=given).body == {"record": "a:b", "expr": rendered}
