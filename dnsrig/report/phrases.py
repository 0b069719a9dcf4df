"""What a value of the matrix is called: `at rest`, not `none`; `100 zones`, not `zones=100`."""

from __future__ import annotations

from collections.abc import Sequence

from dnsrig.report.figures import parameter, visible
from dnsrig.rundir import Scalar, Variant

PHRASES = {
    ("changes", "none"): "at rest",
    ("changes", "catalog"): "while the catalog changes",
    ("changes", "single"): "one change at a time",
    ("changes", "stream"): "a stream of changes",
    ("changes", "refresh"): "without NOTIFY",
    ("transfers", "none"): "no transfers meanwhile",
    ("transfers", "one"): "one transfer at a time meanwhile",
    ("transfers", "pipelined"): "pipelined transfers meanwhile",
    ("cache", "warm"): "warm cache",
    ("cache", "empty"): "empty cache",
    ("page_cache", "warm"): "warm page cache",
    ("page_cache", "cold"): "cold page cache",
    ("names", "cached"): "cached names",
    ("names", "uncached"): "names not in the cache",
    ("hits", "all"): "cache hits only",
    ("hits", "90 %"): "90 % cache hits",
    ("level", "no-do"): "without DO",
    ("level", "do-unvalidated"): "DO, not validated",
    ("level", "validating"): "DO, validated",
    ("broken", "none"): "no broken zones",
    ("broken", "lame"): "lame zones",
    ("broken", "silent"): "silent zones",
    ("broken", "bogus"): "bogus zones",
    ("settings", "defaults"): "default settings",
    ("settings", "raised"): "limits raised",
    ("limits", "raised"): "limits raised",
    ("limits", "own"): "the servers' own limits",
    ("storage", "disk"): "on disk",
    ("storage", "memory"): "in memory",
    ("ixfr", "no"): "AXFR",
    ("ixfr", "yes"): "IXFR",
    ("icmp", "sent"): "with ICMP",
    ("icmp", "blocked"): "without ICMP",
    ("aggressive_nsec", "no"): "no aggressive NSEC",
    ("aggressive_nsec", "yes"): "aggressive NSEC",
    ("qname_minimisation", "no"): "no QNAME minimisation",
    ("qname_minimisation", "yes"): "QNAME minimisation",
    ("traffic", "clients"): "clients' traffic",
    ("traffic", "synthetic"): "even traffic",
    ("as", "primary"): "as a primary",
    ("as", "secondary"): "as a secondary",
    ("size", "large"): "one large zone",
    ("size", "tiny"): "many tiny zones",
}
"""(Axis, value) of the built-in experiments, where the value does not name the thing."""

COUNTED = {
    "zones": ("zone", "zones"),
    "secondaries": ("secondary", "secondaries"),
    "primaries": ("primary", "primaries"),
    "clients": ("client", "clients"),
    "delegations": ("delegation", "delegations"),
    "records_changed": ("record changed", "records changed"),
    "changed_percent": ("% changed", "% changed"),
    "qps": ("query/s", "queries/s"),
    "rate_qps": ("query/s", "queries/s"),
}
"""Axes of numbers -> what is counted: of one, and of several."""

UNITS = {"qps": "queries/s", "s": "s", "ms": "ms", "percent": "%"}
"""End of an axis's name -> the unit of its values."""
BY_THEMSELVES = (
    *("server", "transport", "carrier", "congestion", "algorithm", "denial", "by", "case"),
    *("provisioning", "sample", "emulator"),
)
"""Axes whose values need no further word."""


def of(axis: str, value: Scalar) -> str:
    """The value of ``axis`` as a reader would call it, made safe to show."""
    text = parameter(value)
    if (axis, text) in PHRASES:
        return PHRASES[axis, text]
    if axis in COUNTED and not isinstance(value, bool | str):
        return f"{text} {COUNTED[axis][value != 1]}"
    if measured := with_unit(axis, value):
        return measured
    if axis in BY_THEMSELVES or "server" in axis.lower():
        return visible(text)
    return visible(f"{name(axis)}: {text}")


def with_unit(axis: str, value: Scalar) -> str:
    """``loss 5 %`` for a number on an axis whose name ends with a unit; else nothing."""
    what, _, unit = axis.rpartition("_")
    if unit not in UNITS or what.endswith("_per") or isinstance(value, bool | str):
        return ""
    return visible(f"{what.replace('_', ' ')} {parameter(value)} {UNITS[unit]}")


def of_variant(variant: Variant, axes: Sequence[str]) -> str:
    """The values of ``variant`` on ``axes``; empty of none."""
    return " · ".join(of(axis, variant.parameters[axis]) for axis in axes if axis in variant.parameters)


def name(axis: str) -> str:
    """The axis itself, for the title of an axis of numbers."""
    if axis in COUNTED:
        counted = COUNTED[axis][1]
        return counted if " " in counted or "/" in counted else f"number of {counted}"
    return axis.replace("_", " ")
