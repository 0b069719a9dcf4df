"""Reads files that others made, within limits: bytes, rows, nesting, numbers, and what is inflated.

Results of other tools, experiment files and files of machines may be damaged, or made to harm whoever reads them. Their
readers use these functions. What is beyond a limit is `Refused`, with a sentence.
"""

from __future__ import annotations

import io
import json
import re
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 30
"""Limit for a file that is read row by row."""
MOST_JSON_BYTES = 1 << 28
MOST_VALUES = 1 << 23
"""Values of JSON: each takes up to 60 bytes of memory. An hour of DNS Shotgun has 7 million."""
MOST_CONTAINERS = 1 << 21
"""Objects and arrays of JSON: each takes up to 240 bytes of memory."""
MOST_TOML_BYTES = 1 << 20
MOST_ROWS = 1_000_000
"""Rows of a file that are kept in memory: one a second and series, for a day and longer."""
DEEPEST = 64
"""Levels of tables and arrays; an experiment has eight at most."""
MOST_INFLATED_BYTES = 1 << 24
"""Size of one histogram with five digits, up to an hour, if each of its 3 million counts takes five bytes."""
LARGEST = 1 << 62
"""Counts, and times in ns, fit into 64 bits with a sign, and so does the sum of two."""
LARGEST_NUMBER = 1 << 64
"""Largest number in JSON and TOML: no counter of a program has more bits."""
LONGEST_S = 1 << 32
"""A century."""
_KEY = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_DEEP_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*(?:{_KEY}[ \t]*\.[ \t]*){{{DEEPEST}}}", re.MULTILINE)
"""Matches a key with very many parts: the time of `tomllib` grows with the square of their number."""
_DECODER = json.JSONDecoder()
_BETWEEN_OBJECTS = re.compile(r"[ \t\r\n,\[\]]*")


class Refused(ValueError):
    """A file is beyond a limit."""


def content(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of ``path``. Raises OSError, too."""
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    return _limited(data, most_bytes)


def text(path: Path, most_bytes: int = MOST_TOML_BYTES) -> str:
    """The text of ``path``. Raises OSError and UnicodeDecodeError, too."""
    return content(path, most_bytes).decode()


def lines(data: bytes) -> Iterator[str]:
    """The lines of a text file, one after the other; what is not UTF-8 is shown as such."""
    for line in io.BytesIO(data):
        yield line.decode(errors="replace").rstrip("\r\n")


def inflated(data: bytes) -> bytes:
    """What zlib compressed."""
    decompressor = zlib.decompressobj()
    try:
        found = _limited(decompressor.decompress(data, MOST_INFLATED_BYTES + 1), MOST_INFLATED_BYTES)
    except zlib.error as error:
        raise Refused("it is damaged") from error
    if not decompressor.eof:
        raise Refused("it is cut")
    return found


def toml(text: str) -> dict[str, Any]:
    """The document. Raises TOMLDecodeError, too."""
    if len(text) > MOST_TOML_BYTES:
        raise Refused(f"it has more than {MOST_TOML_BYTES:,} characters")
    if _DEEP_KEY.search(text):
        raise _too_deep()
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise Refused("it has a number beyond all limits") from error
    _check(found)
    return found


def json_value(data: bytes | str, most_values: int = MOST_VALUES) -> Any:
    """The value that ``data`` is."""
    text = data if isinstance(data, str) else _limited(data, MOST_JSON_BYTES).decode(json.detect_encoding(data))
    _limit_json(text, most_values)
    try:
        found = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    _check(found)
    return found


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """One after the other, whether in an array, as lines, or over several lines."""
    _limit_json(text)
    at = _between_objects(text, 0)
    for _ in range(MOST_ROWS):
        if at == len(text):
            return
        try:
            found, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            raise _too_deep() from None
        if not isinstance(found, dict):
            raise Refused("a value is not an object")
        _check(found)
        yield found
        at = _between_objects(text, at)
    if at < len(text):
        raise Refused(f"it has more than {MOST_ROWS:,} objects")


def count(value: Any) -> int:
    """A whole number that is not below zero: how often, or a time in the units of the file."""
    found = int(value)
    if not 0 <= found < LARGEST:
        raise Refused(f"{str(value)[:40]!r} is no count")
    return found


def nanoseconds(seconds: Any) -> int:
    """A time, from seconds."""
    found = float(seconds)
    if not abs(found) <= LONGEST_S:
        raise Refused(f"{str(seconds)[:40]!r} is no time")
    return round(found * 1e9)


def _limited(data: bytes, most_bytes: int) -> bytes:
    if len(data) > most_bytes:
        raise Refused(f"it has more than {most_bytes:,} bytes")
    return data


def _too_deep() -> Refused:
    return Refused(f"it is nested more than {DEEPEST} deep")


def _limit_json(text: str, most_values: int = MOST_VALUES) -> None:
    """Before anything is made of it."""
    if len(text) > MOST_JSON_BYTES:
        raise Refused(f"it has more than {MOST_JSON_BYTES:,} characters of JSON")
    if text.count("[") + text.count("{") > MOST_CONTAINERS or text.count(",") > most_values:
        raise Refused(f"it has more than {MOST_CONTAINERS:,} arrays and objects, or more than {most_values:,} values")


def _between_objects(text: str, at: int) -> int:
    found = _BETWEEN_OBJECTS.match(text, at)
    return found.end() if found else at


def _check(document: Any) -> None:
    """Refuse what nests too deep, numbers that no file of a tool has, and halves of surrogate pairs."""
    level = [document]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += value.keys()
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, str):
                if not value.isascii():
                    _check_characters(value)
            elif isinstance(value, int | float) and not abs(value) < LARGEST_NUMBER:
                raise Refused("it has a number beyond all limits")
        if not inner:
            return
        level = inner
    raise _too_deep()


def _check_characters(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"{value[:40]!r} has half of a surrogate pair") from None
