"""What others say, as it may stand in a log."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 200
"""Characters of a foreign text that are quoted."""
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def token(text: str, where: object) -> str:
    """A bearer token without blanks around it.  Raises `ValueError`, which names the file and quotes nothing of it."""
    found = text.strip()
    if not _TOKEN.fullmatch(found):
        raise ValueError(f"{where}: not one token: it is empty, or of several lines or words, or not of ASCII")
    return found
