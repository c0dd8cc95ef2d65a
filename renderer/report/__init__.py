"""Findings and changes to the words and formats that people and programs read.  A new format is one file here."""

from __future__ import annotations

from renderer.report import json_report, text
from renderer.report.base import Report, Reporter

FORMATS: dict[str, Reporter] = {"text": text.render, "json": json_report.render}

__all__ = ["FORMATS", "Report", "Reporter"]
