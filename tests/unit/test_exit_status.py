"""The exit status: one table, and the code does what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import synthetic
from command_line import status

from dnsrig import discovery, paths
from dnsrig.cli import _exits, bisect, compare, plan
from dnsrig.cli._exits import EVERY, EXIT_SKIP, EXIT_STOP, STATUS
from dnsrig.cli.engine import SUBCOMMANDS
from dnsrig.errors import DnsrigError, UsageError


def test_each_command_of_the_table_is_one() -> None:
    names = {discovery.name_of(module) for module in discovery.modules("dnsrig.cli")} | set(SUBCOMMANDS)
    assert {command.split()[0] for command in STATUS if command != EVERY} <= names


def test_each_status_in_the_code_is_in_the_table() -> None:
    assert {DnsrigError.exit_code, UsageError.exit_code} <= set(STATUS[EVERY])
    assert set(compare.EXIT_STATUS.values()) | {compare.EXIT_NOT_COMPARED} == set(STATUS["compare"])
    assert set(compare.BISECT_STATUS.values()) | {EXIT_STOP} == set(STATUS["compare --bisect"])
    assert {0, plan.EXIT_TOO_LONG, plan.EXIT_NO_ANSWER, plan.EXIT_UNDECIDED} == set(STATUS["plan"])
    assert set(bisect.STATUS.values()) == set(STATUS["bisect"])
    named = {value for name, value in vars(_exits).items() if name.startswith("EXIT_")}
    assert named <= {code for told in STATUS.values() for code in told}
    for path in Path(_exits.__file__).parent.glob("*.py"):
        spelt = re.findall(r"exit\((\d+)\b|Exit\((\d+)\b", path.read_text())
        assert not [code for pair in spelt for code in pair if int(code or 0) > 1], f"{path.name}: by its name"


@pytest.mark.parametrize("command", [["probe"], ["propagation"], ["transfer"], ["load"], ["change"]])
def test_instruments_say_the_same(command: list[str]) -> None:
    text = subprocess.run([paths.engine(), *command, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Exit codes: (.*?)\.\n\n", text, re.DOTALL)
    assert found is not None
    told = {int(number) for number in re.findall(r"(?:^|, )\s*(\d+)\s", " ".join(found[1].split()))}
    name = " ".join(command)
    assert told <= {*STATUS.get(name, {}), *STATUS[EVERY]}
    assert set(STATUS.get(name, {})) <= told


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A good one, a slow one, one of two repeats only."""
    folder = tmp_path_factory.mktemp("runs")
    slow = {("bind@system", 10, repeat): 3.0 for repeat in range(1, 7)}
    made = {"good": (6, {}), "slow": (6, slow), "few": (2, {})}
    return {
        name: synthetic.build(
            folder / name, synthetic.Plan(servers=["bind@system"], zones=[10], repeats=n, slow=slow, samples=False)
        )
        for name, (n, slow) in made.items()
    }


@pytest.mark.parametrize(
    ("new", "plain", "bisect"), [("good", 0, 0), ("slow", 1, 1), ("few", 2, EXIT_SKIP), ("missing", 3, EXIT_STOP)]
)
def test_bisect_skips_what_is_undecided_and_stops_at_what_cannot_be_compared(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, new: str, plain: int, bisect: int
) -> None:
    arguments = ["compare", runs["good"], runs.get(new, Path("nowhere")), "--fail-if", "transfer_time > 150 %"]
    assert status(monkeypatch, *arguments) == plain
    assert status(monkeypatch, *arguments, "--bisect") == bisect


def test_bisect_without_a_rule_would_call_every_commit_good(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(monkeypatch, "compare", runs["good"], runs["slow"], "--bisect") == EXIT_STOP


def test_a_fault_of_ours_is_no_verdict(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dnsrig.analysis.compare.compare_runs", fault)
    arguments = ["compare", runs["good"], runs["good"], "--fail-if", "transfer_time > 150 %"]
    assert status(monkeypatch, *arguments) == compare.EXIT_NOT_COMPARED
    assert status(monkeypatch, *arguments, "--bisect") == EXIT_STOP
    monkeypatch.setattr("dnsrig.analysis.models.held_out.rows", fault)
    assert status(monkeypatch, "plan", "--from", runs["good"]) == plan.EXIT_NO_ANSWER


def test_what_took_no_part_in_a_comparison_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[10], repeats=3))
    (trial,) = made.glob("trials/*/02/trial.json")
    trial.write_text("{")
    (rows,) = made.glob("trials/*/01/samples.arrow")
    rows.write_bytes(rows.read_bytes()[:-50])
    assert status(monkeypatch, "compare", made, made, "--metric", "secondary_cpu_s") == 0
    told = capsys.readouterr().err
    assert f"left out: {trial} cannot be read" in told and f"{rows} is damaged" in told
