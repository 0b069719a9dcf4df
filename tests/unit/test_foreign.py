"""Files that others made: what is beyond a limit is refused with a sentence, before it takes memory."""

from __future__ import annotations

import base64
import json
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from dnsrig import foreign
from dnsrig.errors import UsageError
from dnsrig.experiment import model
from dnsrig.machines import document
from dnsrig.runs import latency
from dnsrig.runs.latency import Latency

DEEP = 200_000


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (foreign.json_value, "[" * DEEP, "nested"),
        (foreign.json_value, "[" * 100 + "]" * 100, "nested"),
        (foreign.json_value, '{"a":' * 100 + "1" + "}" * 100, "nested"),
        (foreign.json_value, '{"a": NaN}', "beyond all limits"),
        (foreign.json_value, '{"a": 1e999}', "beyond all limits"),
        (foreign.json_value, f'{{"a": {1 << 64}}}', "beyond all limits"),
        (foreign.json_value, r'["\ud800"]', "surrogate"),
        (foreign.json_value, r'{"\udfff": 1}', "surrogate"),
        (foreign.json_value, "[" + "1," * (foreign.MOST_VALUES + 1) + "1]", "values"),
        (foreign.json_value, "[],[]," * foreign.MOST_CONTAINERS, "arrays"),
        (lambda text: list(foreign.json_objects(text)), '{"a":' * DEEP, "nested"),
        (lambda text: list(foreign.json_objects(text)), '{"a": 1}\n{"a": -Infinity}', "beyond all limits"),
        (foreign.toml, "a = " + "[" * DEEP, "nested"),
        (foreign.toml, "a = " + "[" * 100 + "]" * 100, "nested"),
        (foreign.toml, "a = " + "{a=" * DEEP, "nested"),
        (foreign.toml, ".".join("a" * 50_000) + " = 1", "nested"),
        (foreign.toml, "b = 1\n[a" + r'."a\" b"' * 50_000 + "]", "nested"),
        (foreign.toml, "[ " + " . ".join("a" * 100) + " ]", "nested"),
        (foreign.toml, "b = [1, {" + ".".join("a" * 50_000) + " = 1}]", "nested"),
        (foreign.toml, "a = " + "9" * 5_000, "beyond all limits"),
        (foreign.toml, "a = 0x" + "f" * 50_000, "beyond all limits"),
        (foreign.toml, "a = nan", "beyond all limits"),
        (foreign.toml, "a = 1\n" * foreign.MOST_TOML_BYTES, "characters"),
    ],
)
def test_what_is_beyond_a_limit_is_refused(read: Callable[[str], Any], text: str, says: str) -> None:
    with pytest.raises(foreign.Refused, match=says):
        read(text)


def test_what_is_within_the_limits_is_read() -> None:
    whole = {"a": [1, -1, 1.5, None, True, "é", "\U0001f600", 1 << 63], "b": {"c": []}}
    assert foreign.json_value(json.dumps(whole)) == foreign.json_value(json.dumps(whole).encode("utf-16")) == whole
    assert list(foreign.json_objects(f"[{json.dumps(whole)},\n{json.dumps(whole)}]")) == [whole, whole]
    names = ".".join("0123456789abcdef" * 2) + ".ip6.arpa"
    assert foreign.toml(f'a.b.c = ["{names}"]\n[d."e.f"]\ng = 2026-01-01') is not None
    assert list(foreign.lines(b"a\r\nb\n\xff\nc")) == ["a", "b", "\ufffd", "c"]


@pytest.mark.parametrize("value", [-1, 1 << 62, 1e300, "x"])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"no count|invalid literal"):
        foreign.count(value)


@pytest.mark.parametrize("value", ["nan", "inf", "-1e300", 1 << 40])
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(foreign.Refused, match="no time"):
        foreign.nanoseconds(value)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    with (path := tmp_path / "x").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(foreign.Refused, match="more than 10 bytes"):
        foreign.content(path, 10)
    assert len(foreign.content(Path("/dev/null"))) == 0


def bomb() -> str:
    """A histogram of 14 kB that inflates to twice what one may have."""
    return base64.b64encode(bytes(8) + zlib.compress(bytes(2 * foreign.MOST_INFLATED_BYTES), 9)).decode()


def test_a_histogram_is_inflated_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HdrHistogram, "decode", lambda payload: pytest.fail("the library inflates without a limit"))
    with pytest.raises(foreign.Refused, match="more than 16,777,216 bytes"):
        latency.decode(bomb())
    (tmp_path / "latency.hlog").write_text(f"Tag=due,0.0,1.0,1.0,{bomb()}\n")
    log = Latency(tmp_path / "latency.hlog", None)
    assert log.damage == "latency.hlog is damaged at line 1" and log.intervals("due") == []


@given(data=st.binary(max_size=300))
def test_any_bytes_are_inflated_or_refused(data: bytes) -> None:
    assert foreign.inflated(zlib.compress(data)) == data
    with pytest.raises(foreign.Refused):
        foreign.inflated(zlib.compress(data)[:-1])


@pytest.mark.parametrize("text", ["a = " + "[" * DEEP, ".".join("a" * 50_000) + " = 1", "limit_s = nan"])
def test_an_experiment_beyond_the_limits_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"is not an experiment: it (is nested|has a number)"):
        model.load(path, "quick", [])
    with pytest.raises(UsageError, match=r"is not a file of machines: it (is nested|has a number)"):
        document.read(path)


@pytest.mark.parametrize("setting", ["a=" + "[" * DEEP, ".".join("a" * 50_000) + "=1", "a=0x" + "f" * 20])
def test_a_setting_beyond_the_limits_is_refused_with_a_sentence(setting: str) -> None:
    with pytest.raises(UsageError, match=r"it is nested|is not a path|it has a number"):
        model.load(model.find("tour"), "quick", [setting])


@given(text=st.text("[]{}=.\"'a1\n, -", max_size=200))
def test_any_text_is_toml_or_refused(text: str) -> None:
    try:
        foreign.toml(text)
    except (tomllib.TOMLDecodeError, foreign.Refused):
        return


def is_read(read: Callable[[Any], object], value: Any) -> bool:
    try:
        read(value)
    except foreign.Refused:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("[[], {}]", True),
        ("[[], {}, []]", False),
        ('[{"a": [1, 2, 3]}]', True),
        ('[{"a": [1, 2, 3, 4]}]', False),
        ("[[[[]]]]", False),
        ("[1, 2, 3, 4]", False),
        ('"' + "x" * 28 + '"', True),
        ('"' + "x" * 29 + '"', False),
    ],
)
def test_a_document_has_so_many_containers_values_and_characters(
    monkeypatch: pytest.MonkeyPatch, text: str, within: bool
) -> None:
    """Three containers, two commas, thirty characters here."""
    monkeypatch.setattr(foreign, "MOST_CONTAINERS", 3)
    monkeypatch.setattr(foreign, "MOST_JSON_BYTES", 30)
    assert is_read(lambda text: foreign.json_value(text, 2), text) is within
    assert is_read(lambda text: foreign.json_value(text.encode(), 2), text) is within


@pytest.mark.parametrize(
    ("read", "last", "beyond"),
    [
        (foreign.json_value, "[" * 65 + "]" * 65, "[" * 66 + "]" * 66),
        (foreign.json_value, "[" * 64 + "1" + "]" * 64, "[" * 65 + "1" + "]" * 65),
        (foreign.json_value, str((1 << 64) - 1), str(1 << 64)),
        (foreign.json_value, str(1 - (1 << 64)), str(-(1 << 64))),
        (foreign.toml, "a = 18446744073709551615", "a = 18446744073709551616"),
        (foreign.count, (1 << 62) - 1, 1 << 62),
        (foreign.count, 0, -1),
        (foreign.nanoseconds, foreign.LONGEST_S, foreign.LONGEST_S * 1.001),
        (foreign.nanoseconds, -foreign.LONGEST_S, -foreign.LONGEST_S * 1.001),
    ],
)
def test_a_limit_is_within_it(read: Callable[[Any], object], last: Any, beyond: Any) -> None:
    assert (is_read(read, last), is_read(read, beyond)) == (True, False)


def test_files_and_objects_are_read_up_to_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "x").write_bytes(b"0123456789")
    assert foreign.content(path, 10) == b"0123456789" and not is_read(lambda path: foreign.content(path, 9), path)
    monkeypatch.setattr(foreign, "MOST_INFLATED_BYTES", 100)
    assert foreign.inflated(zlib.compress(bytes(100))) == bytes(100)
    assert not is_read(foreign.inflated, zlib.compress(bytes(101)))
    monkeypatch.setattr(foreign, "MOST_ROWS", 3)
    assert len([*foreign.json_objects("{}{}{}")]) == 3
    with pytest.raises(foreign.Refused, match="more than 3 objects"):
        list(foreign.json_objects("{}{}{}{}"))
