"""The annotations by which a delivery engine never deletes the operator object, and merges our fields into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from renderer.assemble.fields import Field, Spelling
from renderer.bases import Base
from renderer.kinds.base import Site
from renderer.model import Origin, Problem

_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
_COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
_FLUX_PRUNE = "kustomize.toolkit.fluxcd.io/prune"
_FLUX_APPLY = "kustomize.toolkit.fluxcd.io/ssa"
_FLUX_RECONCILE = "kustomize.toolkit.fluxcd.io/reconcile"
_FLUX_FORCE = "kustomize.toolkit.fluxcd.io/force"
_ARGO_HOOK = "argocd.argoproj.io/hook"

_RECREATING = ("Force", "Replace")
_NOT_APPLIED = {_FLUX_RECONCILE: ("disabled",), _FLUX_APPLY: ("ignore", "ifnotpresent")}


def protect(site: Site, base: Base | None) -> Spelling:
    """The annotations for the site's engine; a base that says otherwise, or would not be applied, is a problem."""
    place = site.origin.below("spec", "delivery", "engine")
    match site.engine:
        case "argocd":
            return _by_argocd(base, place)
        case "flux":
            return _by_flux(base, place)
        case "none":
            return Spelling()
        case _:
            assert_never(site.engine)


def _by_argocd(base: Base | None, place: Origin) -> Spelling:
    options = {"Delete": "false", "Prune": "false", "SkipDryRunOnMissingResource": "true"}
    if base is None:
        merging = _annotation(_SYNC_OPTIONS, _joined(options | {"ServerSideApply": "true"}), place)
        return Spelling([merging, _annotation(_COMPARE_OPTIONS, "IgnoreExtraneous", place)])
    theirs = list(_options(_base_annotation(base, _SYNC_OPTIONS)))
    whole = {name: value for _, name, value in reversed(theirs)} | options
    kept = _annotation(_SYNC_OPTIONS, _joined(whole), place)
    return Spelling([kept], [*_unsafe_options(base, theirs, options), *_hooks(base)])


def _by_flux(base: Base | None, place: Origin) -> Spelling:
    prune = _annotation(_FLUX_PRUNE, "disabled", place)
    if base is None:
        return Spelling([prune, _annotation(_FLUX_APPLY, "Merge", place)])
    theirs = _base_annotation(base, _FLUX_PRUNE)
    wrong = [_contradiction(base, _FLUX_PRUNE, theirs, "disabled")] if theirs not in ("", "disabled") else []
    return Spelling([prune], [*wrong, *_left_alone_by_flux(base)])


def _annotation(key: str, value: str, origin: Origin) -> Field:
    return Field(("metadata", "annotations", key), value, origin)


def _options(text: str) -> Iterator[tuple[str, str, str]]:
    """Each sync option as it stands there, its name, and its value; empty where it has none."""
    for option in filter(None, map(str.strip, text.split(","))):
        name, _, value = option.partition("=")
        yield option, name.strip(), value.strip()


def _joined(options: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" if value else name for name, value in sorted(options.items()))


def _unsafe_options(base: Base, theirs: Sequence[tuple[str, str, str]], ours: Mapping[str, str]) -> Iterator[Problem]:
    for option, name, value in theirs:
        if ours.get(name, value) != value:
            yield _contradiction(base, _SYNC_OPTIONS, option, f"{name}={ours[name]}")
        if name in _RECREATING and value.lower() == "true":
            yield _destructive(base, _SYNC_OPTIONS, option)


def _destructive(base: Base, key: str, value: str) -> Problem:
    message = f"the base says {key}: {value}, by which the object is deleted and created again"
    return Problem("base/conflict", base.origin.below("metadata", "annotations", key), message, "Remove it.")


def _base_annotation(base: Base, key: str) -> str:
    annotations = base.body["metadata"].get("annotations")
    return str(annotations.get(key, "")) if isinstance(annotations, dict) else ""


def _hooks(base: Base) -> Iterator[Problem]:
    value = _pairs(base, "annotations").get(_ARGO_HOOK)
    if value:
        yield _not_applied(base, ("annotations", _ARGO_HOOK), value, "Argo CD")


def _left_alone_by_flux(base: Base) -> Iterator[Problem]:
    """Flux heeds these words as annotations and as labels, in any case (fluxcd/pkg, ssa/utils, AnyInMetadata)."""
    for place in ("annotations", "labels"):
        pairs = _pairs(base, place)
        for key, words in _NOT_APPLIED.items():
            if str(pairs.get(key, "")).lower() in words:
                yield _not_applied(base, (place, key), pairs[key], "Flux")
        if str(pairs.get(_FLUX_FORCE, "")).lower() == "enabled":
            yield _destructive(base, _FLUX_FORCE, "enabled")


def _pairs(base: Base, place: str) -> Mapping[str, Any]:
    """Annotations or labels as the engine finds them, after the base's own patches."""
    body = base.settled(base.body) if base.later else base.body
    found = body["metadata"].get(place) if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def _not_applied(base: Base, path: tuple[str, str], value: object, engine: str) -> Problem:
    message = f"the base says {path[1]}: {value}, so that {engine} would not apply what is rendered there"
    return Problem("base/conflict", base.origin.below("metadata", *path), message, "Remove it, or use form: none.")


def _contradiction(base: Base, key: str, theirs: str, ours: str) -> Problem:
    message = f"the base says {key}: {theirs}, and what is rendered there needs {ours}, so that the object is safe"
    return Problem(
        "base/conflict", base.origin.below("metadata", "annotations", key), message, "Remove it from the base."
    )
