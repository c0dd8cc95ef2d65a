"""The Kube Descheduler Operator's versions: which schema a ClusterServiceVersion brings."""

from __future__ import annotations

from renderer.releases.versions import Version

SCHEMAS = tuple(f"4.{minor}" for minor in range(12, 24))
"""Named after the operator's release branches."""

KNOWN = ("4.12.x", "4.13.x", "4.14.x", "5.0.x", "5.1.x", "5.2.x", "5.3.x", "5.4.x")


def schema(version: Version) -> str | None:
    """The schema that a CSV version brings, None where it is not known.

    README.md:28 and the ClusterServiceVersion of each release branch; where one number was built from two
    branches (5.3.1 and 5.3.3, 5.4.0) the narrower schema holds.
    """
    patch = version.patch or 0
    match version.major, version.minor:
        case 4, 12 | 13 | 14:
            return version.name
        case 5, 0:
            return "4.15"
        case 5, 1:
            return "4.18" if patch >= 5 else "4.17"
        case 5, 2:
            return "4.19"
        case 5, 3:
            return "4.21" if patch >= 3 else "4.20"
        case 5, 4:
            return "4.22"
        case _:
            return None
