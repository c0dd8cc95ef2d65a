"""PromQL expressions as values: what is wrong with them and where, what they read, which labels come out."""

from renderer.promql.parsing import Call, Expression, Fault, Window, parse
from renderer.promql.syntax import Feature
from renderer.promql.tokens import Token, place
from renderer.promql.unfolding import unfolded

__all__ = ["Call", "Expression", "Fault", "Feature", "Token", "Window", "parse", "place", "unfolded"]
