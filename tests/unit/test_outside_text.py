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
from dnsrig.analysis.read import Run
from dnsrig.cli import _progress
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import runner
from dnsrig.rundir import Manifest, TrialKey, TrialSpec, Variant, read_json
from dnsrig.servers.logs import utc_ns_without_year

MARKUP = "default [/off] [cold] [bold]x :cold: \x1b[31m"
SHOWN = "default [/off] [cold] [bold]x :cold: \\x1b[31m"
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
