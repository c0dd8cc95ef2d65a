"""A query of the policy's own on OpenShift: the records of the descheduler operator that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from renderer import documents, promql
from renderer.kinds.operator_schema import unsettled
from renderer.kinds.rebalance_spec import Query
from renderer.model import Origin, Problem
from renderer.releases.descheduler_operator import Schema, minor, since
from renderer.releases.operator_metrics import PREFIX, RECORDS
from renderer.words import shown


def judge(query: Query, known: Sequence[Schema], at: Origin) -> Iterator[Problem]:
    """Each record that an operator does not make; one that takes no query at all has been told already."""
    names = sorted(name for name in promql.parse(query.query).metrics if name.startswith(PREFIX))
    for schema in known:
        if schema.takes_metrics:
            for name in names:
                if RECORDS.get(name, minor(schema.name) + 1) > minor(schema.name):
                    place = documents.within(at, *promql.place(query.query, name))
                    message = f"{schema.title} does not record {shown(name)}: "
                    message += "no node would have a load, and nothing would be balanced"
                    yield Problem("rebalance/unknown-record", place, message, _help(name, schema))


def _help(name: str, schema: Schema) -> str:
    first = RECORDS.get(name)
    there = [record for record, first in RECORDS.items() if first <= minor(schema.name)]
    nearest = f"The nearest there is: {get_close_matches(name, there, 1, 0)[0]}."
    if first is None:
        return nearest
    return f"It came with {since(first)}. {nearest}{unsettled(schema, first)}"
