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
from renderer.words import shortened

_NOTHING = "no node would have a load, and nothing would be balanced"
_LONG = 120
"""Characters; what tells these names apart stands at their end."""


def judge(query: Query, known: Sequence[Schema], at: Origin) -> Iterator[Problem]:
    """Each record that an operator does not make; one that takes no query at all has been told already."""
    names = sorted(name for name in promql.parse(query.query).metrics if name.startswith(PREFIX))
    for name in names:
        if name not in RECORDS and any(schema.takes_metrics for schema in known):
            place = documents.within(at, *promql.place(query.query, name))
            there = [record for record, first in RECORDS.items() if first <= minor(known[0].name)]
            message = f"no descheduler operator records {shortened(name, _LONG)}: {_NOTHING}"
            yield Problem("rebalance/unknown-record", place, message, _nearest(name, there))
    for schema in known:
        if schema.takes_metrics:
            for name in filter(RECORDS.__contains__, names):
                if RECORDS.get(name, minor(schema.name) + 1) > minor(schema.name):
                    place = documents.within(at, *promql.place(query.query, name))
                    message = f"{schema.title} does not record {shortened(name, _LONG)}: {_NOTHING}"
                    yield Problem("rebalance/unknown-record", place, message, _help(name, schema))


def _help(name: str, schema: Schema) -> str:
    first = RECORDS[name]
    there = [record for record, first in RECORDS.items() if first <= minor(schema.name)]
    return f"It came with {since(first)}. {_nearest(name, there)}{unsettled(schema, first)}"


def _nearest(name: str, there: Sequence[str]) -> str:
    return f"The nearest there is: {get_close_matches(name, there, 1, 0)[0]}."
