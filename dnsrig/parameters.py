"""Parameters of datasets and streams, and options of procedures: their names, types and ranges. A wrong one is refused
before a run begins.

A number has a range by its name, or else by its unit. The ranges are at least as wide as the ranges of the engine's
options; a number beyond them makes no sense.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar

Range = tuple[float, float]
DAY_S = 86_400
MOST_A_SECOND = 10_000_000
BY_NAME: Mapping[str, Range] = {
    "change_limit_s": (0.001, DAY_S),
    "changes": (1, 1_000_000),
    "changes_per_s": (0.001, 100_000),
    "clients": (1, 65_536),
    "connections": (1, 65_536),
    "cycle_s": (0.01, DAY_S),
    "duration_s": (0.01, DAY_S),
    "edns_bytes": (0, 65_535),
    "flood_clients": (1, 65_536),
    "flood_qps": (0.001, MOST_A_SECOND),
    "flood_s": (0.01, DAY_S),
    "generations": (1, 1_000_000),
    "generators": (0, 64),
    "idle_timeout_s": (0.001, DAY_S),
    "interval_s": (0.01, DAY_S),
    "ixfr_serial": (0, (1 << 32) - 1),
    "large_records": (1, 10_000_000),
    "of_capacity": (0, 1),
    "ports": (1, 16_384),
    "primaries": (1, 64),
    "primary_ready_limit_s": (1, 7 * DAY_S),
    "queries_per_connection": (0, 1_000_000_000),
    "query_rows": (0, 50_000_000),
    "ramp_latency_ms": (0.001, 60_000),
    "ramp_most_qps": (1, MOST_A_SECOND),
    "ramp_percentile": (1, 100),
    "ramp_precision_percent": (0.1, 100),
    "ramp_repeats": (1, 99),
    "ramp_start_qps": (1, MOST_A_SECOND),
    "ramp_step_s": (0.01, DAY_S),
    "ready_limit_s": (1, 7 * DAY_S),
    "records_changed": (0, 150_000_000),
    "retries": (0, 1_000),
    "retry_after_s": (0.001, DAY_S),
    "secondaries": (1, 1_000),
    "seed": (0, (1 << 63) - 1),
    "speed": (0.001, 100_000),
    "stop_limit_s": (1, DAY_S),
    "threads": (1, 64),
    "timeout_s": (0.001, 3_600),
    "transfers_window": (0, 65_535),
    "window": (0, 65_535),
}
BY_UNIT: Mapping[str, Range] = {
    "_per_s": (0.001, 1_000_000),
    "_s": (0, DAY_S),
    "_ms": (0, 1_000 * DAY_S),
    "_percent": (0, 100),
    "_share": (0, 1),
    "_qps": (0, MOST_A_SECOND),
    "_seed": (0, (1 << 63) - 1),
}
ANY: Range = (-1e15, 1e15)
"""Range of a plug-in's number without a unit in its name."""
TYPES: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def chosen(
    table: str, owner: str, defaults: Mapping[str, Scalar], values: Mapping[str, Scalar], own: Mapping[str, Range]
) -> dict[str, Scalar]:
    """``defaults`` with ``values`` over them. Raises UsageError on an unknown name, a wrong type or a number out of
    range.

    ``table``: the table of the experiment; ``owner``: beginning of the sentence about an unknown name, e.g. ``dataset
    tld has no``; ``own``: ranges that the owner declares.
    """
    found = dict(defaults)
    for name, value in values.items():
        if name not in defaults:
            raise UsageError(f"{owner} {name!r}", hint=f"it has: {', '.join(defaults)}")
        kind = type(defaults[name])
        found[name] = float(value) if kind is float and type(value) is int else value
        if type(found[name]) is not kind:
            raise UsageError(
                f"{table}.{name} must be {TYPES[kind]}, not {value!r}", hint=f"its default is {defaults[name]!r}"
            )
        check(table, name, value, own)
    return found


def range_of(name: str, own: Mapping[str, Range]) -> Range:
    """The range of the number called ``name``; ``own``: ranges that its owner declares."""
    unit = next((unit for unit in BY_UNIT if name.endswith(unit)), None)
    return own.get(name) or BY_NAME.get(name) or (BY_UNIT[unit] if unit else ANY)


def check(table: str, name: str, value: Scalar, own: Mapping[str, Range]) -> None:
    """Raise UsageError if a number of ``table`` in an experiment is out of its range."""
    if isinstance(value, bool | str):
        return
    least, most = range_of(name, own)
    if not least <= value <= most:
        raise UsageError(
            f"{table}.{name} = {value}: a number from {least:,} to {most:,} is expected",
            hint=f"set {table}.{name} to a number within the range",
        )
