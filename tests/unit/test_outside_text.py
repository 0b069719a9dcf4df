"""What comes from outside is shown as it is, and a name that cannot be one is refused where it comes in."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import synthetic
from command_line import experiment, output, status
from pydantic import ValidationError
from rich.console import Console

import dnsrig.cli
from dnsrig.cli import _console, _progress
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import runner
from dnsrig.rundir import Manifest, TrialKey, TrialSpec, Variant, read_json
from dnsrig.runs.run import Run
from dnsrig.servers.formats import utc_ns_without_year
from dnsrig.text import LONGEST_TEXT, digits, visible

MARKUP = "default [/off] [cold] [bold]x :snowflake: \x1b[31m"
SHOWN = "default [/off] [cold] [bold]x :snowflake: \\x1b[31m"
EXPERIMENT = experiment("title [cold]", "question [/off]")


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TERM", "xterm")


def test_markup_in_values_is_printed_by_the_dry_run(
    tmp_path: Path, wide: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{EXPERIMENT}[matrix.'ports [cold]']\n{json.dumps(MARKUP)} = {{}}\n")
    assert status(monkeypatch, "run", path, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == 2, "in the matrix and in the order"
    assert "title [cold]: question [/off]" in shown and "ports [cold]" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("live", [True, False])
def test_markup_in_values_is_printed_while_it_runs(tmp_path: Path, live: bool) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[5], repeats=1)))
    (trial,) = run.trials
    spec = trial.record.spec
    spec.variant.parameters = {"ports": MARKUP}
    trial.record.outcome, trial.record.reason = "timeout", f"reason {MARKUP}"
    text = io.StringIO()
    console = Console(file=text, force_terminal=live, width=400, color_system=None, markup=False, emoji=False)
    progress: Any = _progress.LiveProgress(console) if live else _progress.PlainProgress(console)
    if live:
        progress.__enter__()
    progress.trial_started(1, 1, spec)
    progress.trial_event(spec, {"event": "phase", "phase": "measure"})
    progress.trial_ended(spec, trial, "")
    if live:
        progress.__exit__()
    assert f"ports={SHOWN}" in text.getvalue() and f"reason {SHOWN}" in text.getvalue()


def test_markup_in_values_is_printed_by_the_report(
    tmp_path: Path, wide: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = synthetic.Plan(
        servers=["bind@system"], zones=[5], repeats=1, title="title [/off] [cold]", extra_axes={"axis [cold]": [MARKUP]}
    )
    directory = synthetic.build(tmp_path / "run", plan)
    code, shown, _ = output(monkeypatch, capsys, "report", directory, "--full")
    assert code == 0
    assert "axis [cold]" in shown and SHOWN in shown


def test_every_command_prints_on_a_console_that_takes_text_as_it_is() -> None:
    folder = Path(dnsrig.cli.__file__).parent
    made = [path.name for path in folder.glob("*.py") if re.search(r"\bConsole\(", path.read_text())]
    assert made == ["_console.py"]


PLAIN = "3.5 'x' [off] :snowflake: True http://a.example/b 2001:db8::1"


def test_no_console_paints_or_reads_what_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    """Also on a terminal with colours, where numbers and paths of others would be painted."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for console in (_console.out(), _console.prose(as_json=False)):
        console.print(PLAIN)
    for console in (_console.err(), _console.err(soft_wrap=True), _console.progress(False), _console.prose(True)):
        console.print(PLAIN)
    _console.progress(quiet=True).print(PLAIN)
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{PLAIN}\n" * 2, f"{PLAIN}\n" * 4)


def test_only_a_soft_line_is_longer_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    _console.err().print(PLAIN)
    _console.err(soft_wrap=True).print(PLAIN)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == PLAIN and len(lines) > 2 and all(len(line) <= 20 for line in lines[:-1])


def test_a_file_whose_name_cannot_be_an_experiments_is_refused_by_the_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my exp.toml"
    path.write_text(EXPERIMENT)
    assert status(monkeypatch, "run", path, "--dry-run") == 2
    told = capsys.readouterr().err
    assert "an experiment cannot be called 'my exp'" in told and "call the file my-exp.toml" in told


@pytest.mark.parametrize("name", ["", ".", "..", "../../../../etc", "a/b", "a b", "a\n", "a\0", "é", "x" * 201])
def test_a_name_from_a_file_is_one_part_of_a_path(name: str) -> None:
    with pytest.raises(ValidationError):
        Variant(id=name, parameters={})
    with pytest.raises(ValidationError):
        TrialKey(variant=name, repeat=1)


@pytest.mark.parametrize("where", ["variants", "order", "hosts", "ends"])
def test_a_manifest_that_leads_elsewhere_is_not_read(tmp_path: Path, where: str) -> None:
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[5], repeats=1))
    told = json.loads((directory / "manifest.json").read_text())
    away = "../../../../etc"
    spec = told["specs"]["v00"]
    match where:
        case "variants":
            told["variants"][0]["id"] = away
        case "order":
            told["order"][0]["variant"] = away
        case "hosts":
            spec["hosts"][away] = spec["hosts"].pop("observer")
        case _:
            spec["links"][0]["ends"][0] = away
    (directory / "manifest.json").write_text(json.dumps(told))
    with pytest.raises(
        DnsrigError, match=r"manifest.json is not what dnsrig writes: .*'\.\./\.\./\.\./\.\./etc' is no name"
    ):
        read_json(directory / "manifest.json", Manifest)
    if where in ("hosts", "ends"):
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        with pytest.raises(DnsrigError, match="is no name"):
            read_json(tmp_path / "spec.json", TrialSpec)


@pytest.mark.parametrize("folder", ["my runs", "it's", "a\tb"])
def test_a_folder_that_servers_could_not_read_in_their_configuration_is_refused(tmp_path: Path, folder: str) -> None:
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[5], repeats=1))
    with pytest.raises(UsageError, match="servers cannot be given the path"):
        runner.create(read_json(directory / "manifest.json", Manifest), tmp_path / folder)


@pytest.mark.parametrize(
    ("line", "now", "expected"),
    [
        ("Dec 31 23:59:59 done", datetime(2027, 1, 1, 0, 0, 5), datetime(2026, 12, 31, 23, 59, 59)),
        ("Jan 01 00:00:01 done", datetime(2027, 1, 1, 0, 0, 5), datetime(2027, 1, 1, 0, 0, 1)),
        ("Jan 01 00:00:01 done", datetime(2026, 12, 31, 23, 59, 58), datetime(2027, 1, 1, 0, 0, 1)),
        ("Feb 29 12:00:00 done", datetime(2028, 2, 29, 12, 0, 9), datetime(2028, 2, 29, 12, 0, 0)),
        ("Feb 30 12:00:00 done", datetime(2028, 2, 29, 12, 0, 9), None),
    ],
)
def test_a_log_without_a_year_is_read_across_new_year(line: str, now: datetime, expected: datetime | None) -> None:
    pattern = re.compile(r"(?P<time>\w{3} \d\d \d\d:\d\d:\d\d)")
    found = utc_ns_without_year(line, pattern, "%b %d %H:%M:%S", near=now.replace(tzinfo=UTC))
    assert found == (None if expected is None else int(expected.replace(tzinfo=UTC).timestamp()) * 1_000_000_000)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b\u00a0é\u0100\u4e00\U00010000\U0001f600", "a b\u00a0é\u0100\u4e00\U00010000\U0001f600"),
        ("\0\t\n\x1b\x7f\x9f\u00ad", r"\x00\x09\x0a\x1b\x7f\x9f\xad"),
        ("\u0600\u200b\u202e\u2028\u2029\ufeff\ud800\udcff", r"\u0600\u200b\u202e\u2028\u2029\ufeff\ud800\udcff"),
        ("\U000110bd\U000e0001", r"\U000110bd\U000e0001"),
        ("x" * LONGEST_TEXT, "x" * LONGEST_TEXT),
        ("x" * LONGEST_TEXT + "y", "x" * LONGEST_TEXT + "… (2,001 characters)"),
    ],
    ids=["seen", "control", "format", "beyond", "longest", "cut"],
)
def test_what_acts_unseen_is_written_out_and_long_text_is_cut(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("value", "significant", "shown"),
    [
        (0, 3, "0"),
        (float("inf"), 3, "inf"),
        (2684, 3, "2,684"),
        (2684.4, 3, "2,684"),
        (268.44, 3, "268"),
        (26.844, 3, "26.8"),
        (26.0, 3, "26"),
        (1, 3, "1"),
        (100, 1, "100"),
        (-0.012345, 3, "-0.0123"),
        (0.0123, 4, "0.0123"),
        (0.012345, 1, "0.01"),
        (1e-9, 3, "0.000000001"),
        (1e-10, 3, "0"),
    ],
)
def test_a_number_has_three_digits_and_no_exponent(value: float, significant: int, shown: str) -> None:
    assert digits(value, significant) == shown
