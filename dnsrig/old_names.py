"""Names of earlier versions, as run directories and experiments of then have them. Nothing else knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_DIRECTIONS = {"there": "forward", "back": "reverse"}


def name(old: str) -> str:
    """Today's name of a key, a setting's path or a column."""
    return old.replace("octets", "bytes").replace("path.back", "path.reverse")


def experiment(raw: Any) -> Any:
    """A document, with today's keys."""
    if isinstance(raw, list):
        return [experiment(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    found = {name(key): experiment(value) for key, value in raw.items()}
    if isinstance(path := found.get("path"), dict) and "back" in path:
        found["path"] = {_DIRECTIONS.get(key, key): value for key, value in path.items()}
    return found


def record(data: Any) -> Any:
    """What was stored as JSON, with today's keys. Of a link both directions were stored, so a host may have the name of
    one."""
    if isinstance(data, list):
        return [record(each) for each in data]
    if not isinstance(data, dict):
        return data
    directions = _DIRECTIONS if set(_DIRECTIONS) <= set(data) else {}
    return {directions.get(key) or name(key): record(value) for key, value in data.items()}


def rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A file's rows, with today's columns and directions."""
    if not any("octets" in column for column in frame.columns):
        return frame
    frame = frame.rename(name)
    return (
        frame.with_columns(frame["direction"].cast(str).replace(_DIRECTIONS)) if "direction" in frame.columns else frame
    )
