"""The annotations by which a delivery engine knows what to do with an object that a policy brings."""

from __future__ import annotations

from renderer.kinds.base import Site


def engine_annotations(site: Site, *, keep: bool = False, custom: bool = False, text: str = "") -> dict[str, str]:
    """For an object that is to stay once it is gone from Git (`keep`), or whose CRD may be missing (`custom`).

    `text` is what stands in the object: where Flux substitutes variables, an object with a `$` is left out of it.
    """
    if site.engine == "argocd":
        return _argocd(keep=keep, custom=custom)
    if site.engine == "flux":
        kept = {"kustomize.toolkit.fluxcd.io/prune": "disabled"} if keep else {}
        literal = site.substitution and "$" in text
        return kept | ({"kustomize.toolkit.fluxcd.io/substitute": "disabled"} if literal else {})
    return {}


def _argocd(*, keep: bool, custom: bool) -> dict[str, str]:
    options = ["Delete=false", "Prune=false"] if keep else []
    options += ["SkipDryRunOnMissingResource=true"] if custom else []
    out = {"argocd.argoproj.io/sync-options": ",".join(options)} if options else {}
    return out | ({"argocd.argoproj.io/compare-options": "IgnoreExtraneous"} if keep else {})
