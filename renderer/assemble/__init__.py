"""Settings to the fields of the operator object, in the words of the releases that must accept them."""

from __future__ import annotations

from collections.abc import Sequence

from renderer.assemble import hyperconverged, kubevirt
from renderer.assemble.fields import Field, Spelling
from renderer.assemble.protection import protect
from renderer.bases import Base
from renderer.kinds.base import Site
from renderer.model import Setting

__all__ = ["Field", "Spelling", "kept_limits", "protect", "spell"]


def spell(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    """How the site's releases spell the settings; every field is accepted by all of them."""
    if site.releases[0].hyperconverged is None:
        return kubevirt.spell(settings, site, base)
    return hyperconverged.spell(settings, site, base)


def kept_limits(site: Site, base: Base) -> str:
    """Rate limits that the base sets itself, with their places; empty where there are none."""
    places = kubevirt.own_limits(base) if site.releases[0].hyperconverged is None else hyperconverged.own_limits(base)
    return ", ".join(places)
