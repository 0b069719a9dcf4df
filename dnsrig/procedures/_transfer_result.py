"""What the summary of the instrument `transfer` means for a trial. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.procedures.context import Result
from dnsrig.procedures.parts import validity
from dnsrig.text import digits


def concluded(summary: Mapping[str, Any], *, zones: int, limit_s: float) -> Result:
    """What the ``summary`` of `transfer` means for a trial that was to take ``zones``, over all secondaries, within
    ``limit_s``.

    With `repeat` more than ``zones`` arrive; one that never did is among the failures then.
    """
    arrived = summary["done"] + summary["up_to_date"]
    failures = outcomes(summary)
    if not arrived and not summary.get("unfinished"):
        return Result(
            "server-failed", f"none of {zones:,} zones was transferred" + (f": {failures}" if failures else "")
        )
    if reason := validity.why_transfer_did_not(summary):
        return Result("invalid", reason)
    if arrived < zones or summary["failed"]:
        after_s = summary["elapsed_ns"] / 1e9 if failures else limit_s
        return Result(
            "timeout",
            f"{arrived:,} of {zones:,} zones after {digits(after_s)} s" + (f"; {failures}" if failures else ""),
        )
    return Result("done")


def outcomes(summary: Mapping[str, Any]) -> str:
    """``2,813 servfail, 2 cut``: what became of zones that did not arrive, the most frequent first."""
    bad = {name: count for name, count in summary["outcomes"].items() if count and name not in ("done", "up-to-date")}
    ranked = sorted(bad.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ranked)
