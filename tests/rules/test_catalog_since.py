"""Which Prometheus the catalogue needs."""

from __future__ import annotations

import pytest

from renderer import catalog, promql
from renderer.releases import prometheus


@pytest.mark.parametrize("name", catalog.CATALOG)
def test_the_release_that_a_group_needs(name: str) -> None:
    sources = [catalog.Source("name"), catalog.Source("address")]
    texts = [rule.expr for source in sources for rule in catalog.CATALOG[name](source).rules]
    functions = {call.name for text in texts for call in promql.parse(text).calls}
    syntax = {feature.name for text in texts for feature in promql.parse(text).features}
    needed = [prometheus.FUNCTIONS[one] for one in functions] + [prometheus.SYNTAX[one] for one in syntax]
    assert max(needed) == catalog.SINCE.get(name, (2, 0))
