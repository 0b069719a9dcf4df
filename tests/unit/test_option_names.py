"""The help and the names of options: one screen of commands, and one meaning for each option name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest
from command_line import output
from golden_files import same
from rich.text import Text

from dnsrig.cli import _former, _units
from dnsrig.cli._app import GROUPS, command_line
from dnsrig.cli.engine import SUBCOMMANDS
from dnsrig.errors import UsageError

GOLDEN = Path(__file__).with_name("golden") / "options.json"
ROWS, COLUMNS, SUMMARY_COLUMNS = 50, 80, 60
MARGINS = 2


def leaves(command: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from leaves(inner, f"{prefix}{name} ")
        else:
            yield prefix + name, inner


OURS = [(name, command) for name, command in leaves(command_line()) if name not in SUBCOMMANDS]


def test_the_help_fits_on_a_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    _, shown, _ = output(monkeypatch, capsys, "--help")
    lines = shown.rstrip().splitlines()
    assert len(lines) <= ROWS and max(map(len, lines)) <= COLUMNS
    assert [line for line in lines if "trial " in line.partition("  ")[0]] == []
    for group, names in GROUPS.items():
        assert f" {group} " in shown and all(f"│ {name} " in shown for name in names)


def test_no_part_of_a_help_text_is_lost_as_markup() -> None:
    """Text in brackets is a style for the terminal, such as `[default: udp]`."""
    helps = {(name, each.name): getattr(each, "help", None) or "" for name, command in OURS for each in command.params}
    assert len(helps) > 100
    assert {place: text for place, text in helps.items() if Text.from_markup(text).plain != text} == {}


def test_each_command_is_in_one_group_except_the_hidden_one() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    shown = [name for name, command in command_line().commands.items() if not command.hidden]
    assert sorted(grouped) == sorted(shown)
    assert {*command_line().commands} - {*shown} == {"trial"}


@pytest.mark.parametrize(("name", "command"), OURS, ids=[name for name, _ in OURS])
def test_the_help_of_a_command_begins_with_a_sentence_and_an_example(name: str, command: Any) -> None:
    sentence, *more = command.help.split("\n\n")
    assert len(sentence) <= SUMMARY_COLUMNS and sentence.endswith(".")
    examples = more[1].splitlines() if more[0] == "Examples:" else [more[0].removeprefix("Example: ")]
    assert any(f"dnsrig {name}" in line for line in examples)
    for line in more[1].splitlines() if more[0] == "Examples:" else []:
        assert len(line) <= COLUMNS - MARGINS, line


@pytest.mark.parametrize("command", ["", "run", "compare", "plan", "servers", "servers install"])
def test_a_flag_has_no_value(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ("--help", "-h"):
        status, shown, _ = output(monkeypatch, capsys, *command.split(), asked)
        assert status == 0 and "<bool>" not in shown


def test_each_command_of_the_engine_has_a_short_summary() -> None:
    assert all(len(text) <= SUMMARY_COLUMNS and text.endswith(".") for text in SUBCOMMANDS.values())


def kind_of(option: Any) -> tuple[object, ...]:
    """What can be written after the option, and how often."""
    flag = option.is_flag
    return flag, option.multiple, None if flag else option.metavar or option.type_descriptor.annotation


def test_an_option_name_takes_the_same_value_in_all_commands() -> None:
    found: dict[str, dict[tuple[object, ...], list[str]]] = {}
    for name, command in OURS:
        for option in command.params:
            for spelling in option.opts if option.param_type_name == "option" else []:
                found.setdefault(spelling, {}).setdefault(kind_of(option), []).append(name)
    assert {spelling: kinds for spelling, kinds in found.items() if len(kinds) > 1} == {}


def test_no_option_of_the_rig_has_a_unit_in_its_name() -> None:
    """A value has its unit: 5s, 200ms."""
    names = [spelling for _, command in OURS for option in command.params for spelling in option.opts]
    assert [name for name in names if name.endswith(("-s", "-ms", "-us", "-ns"))] == []


@pytest.mark.parametrize("command", _former.FORMER)
def test_former_names_are_read_and_not_shown(command: str) -> None:
    """A former name must not be the name of an option today, or one of them could not be given."""
    (found,) = [inner for name, inner in OURS if name == command]
    names = {spelling for option in found.params for spelling in option.opts}
    for former, name in _former.FORMER[command].items():
        assert name in names and former not in names


@pytest.mark.parametrize(
    ("command", "written", "read"),
    [
        ("bisect", ["--metric=p99 > 1 %", "--axis", "zones"], ["--bad-if", "p99 > 1 %", "--vary", "zones"]),
        ("import", ["dnsperf", "--timeout-s", "0.5"], ["dnsperf", "--timeout", "0.5s"]),
        ("plan", ["--rate", "1mbit", "--", "--rate"], ["--bandwidth", "1mbit", "--", "--rate"]),
        ("history", ["--order"], ["--sort"]),
    ],
)
def test_former_names_mean_the_names_of_today(command: str, written: list[str], read: list[str]) -> None:
    assert list(_former.renamed(written, _former.FORMER[command])) == read


def test_a_command_reads_a_former_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    far = ["plan", "--zones", "10", "--rtt", "1ms", "--congestion", "reno", "--json"]
    today, before = (output(monkeypatch, capsys, *far, name, "1mbit") for name in ("--bandwidth", "--rate"))
    assert today == before and today[0] == 0


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("200ms", 0.2), ("2m", 120), ("30min", 1800), ("1h", 3600)])
def test_durations(text: str, seconds: float) -> None:
    assert _units.duration_s(text, "--timeout") == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "hint"), [("5", "write 5s or 5ms"), ("0.5", "write 0.5s or 0.5ms"), ("5x", "5s, 2m")])
def test_a_duration_needs_a_unit(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        _units.duration_s(text, "--timeout")
    assert hint in refused.value.hint and "--timeout" in refused.value.message


@pytest.mark.parametrize("text", ["0.1ms", "2h"])
def test_a_duration_beyond_its_bounds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=text):
        _units.duration_s(text, "--timeout", 0.001, 3600)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (_units.rate_bytes_per_s, "8kbit", 1e3),
        (_units.rate_bytes_per_s, "20mbit", 2.5e6),
        (_units.rate_bytes_per_s, "1 Gbit", 1.25e8),
        (_units.nbytes, "7B", 7),
        (_units.nbytes, "512kB", 512e3),
        (_units.nbytes, "1.5MB", 1.5e6),
        (_units.nbytes, "3gb", 3e9),
        (_units.count, "500", 500),
        (_units.count, "20k", 20e3),
        (_units.count, "1.5M", 1.5e6),
        (_units.share, "0.2%", 0.002),
        (_units.share, "100 %", 1),
        (_units.duration_s, "10us", 1e-5),
        (_units.duration_s, "0s", 0),
        (_units.rate_bytes_per_s, "20", None),
        (_units.rate_bytes_per_s, "20MB", None),
        (_units.nbytes, "3", None),
        (_units.count, "20%", None),
        (_units.count, "20g", None),
        (_units.count, "9" * 16, None),
        (_units.count, "0.1234567891", None),
        (_units.share, "0.2", None),
    ],
)
def test_a_quantity_has_one_of_its_units(read: _units.Reader, text: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(UsageError, match="--option") as refused:
            read(text, "--option")
        assert "e.g. " in refused.value.hint
    else:
        assert read(text, "--option") == pytest.approx(value)


def test_a_duration_may_be_at_its_bounds() -> None:
    assert [_units.duration_s(text, "--timeout", 0.001, 3600) for text in ("1ms", "1h")] == [0.001, 3600]


def test_all_that_cannot_be_read_is_reported_at_once() -> None:
    found = _units.all_of(rate=("8kbit", _units.rate_bytes_per_s), size=(None, _units.nbytes))
    assert found == {"rate": 1000, "size": None}
    with pytest.raises(UsageError, match=r"--rate '1', --size 'x'") as refused:
        _units.all_of(rate=("1", _units.rate_bytes_per_s), size=("x", _units.nbytes), more=("1k", _units.count))
    assert refused.value.hint.count("; ") == 1


def option(each: Any) -> dict[str, Any]:
    """What a parameter takes, without what is false or empty."""
    names = ("default", "required", "multiple", "is_flag", "hidden", "min", "max")
    told = {name: getattr(each, name, None) for name in names}
    return {
        name: str(value) if isinstance(value, PurePath) else value
        for name, value in told.items()
        if value and isinstance(value, bool | int | float | str | list | tuple | PurePath)
    }


def test_options_take_what_they_took() -> None:
    """Their defaults and limits are in ``golden/options.json``; ``DNSRIG_BLESS=1`` makes it anew."""
    told = {name: {"/".join(each.opts): option(each) for each in command.params} for name, command in OURS}
    assert same(GOLDEN, json.dumps(told, indent=1, sort_keys=True) + "\n")
