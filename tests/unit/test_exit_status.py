"""The exit status: one table, and the code does what it says."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import synthetic
from command_line import experiment, status

from dnsrig import discovery, paths
from dnsrig.cli import _exits, bisect, compare
from dnsrig.cli._exits import EVERY, EXIT_SKIP, EXIT_STOP, STATUS
from dnsrig.cli.engine import SUBCOMMANDS
from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import compare_within
from dnsrig.comparison.summary import variant_table
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment.preparation import Where
from dnsrig.rundir import Manifest
from dnsrig.runs.run import Run

pytestmark = pytest.mark.usefixtures("undrawn")


def test_each_command_of_the_table_is_one() -> None:
    names = {discovery.name_of(module) for module in discovery.modules("dnsrig.cli")} | set(SUBCOMMANDS)
    assert {command.split()[0] for command in STATUS if command != EVERY} <= names


def test_each_status_in_the_code_is_in_the_table() -> None:
    assert {DnsrigError.exit_code, UsageError.exit_code} <= set(STATUS[EVERY])
    verdicts = {"pass": 0, "regression": 1, "undecided": 3, None: 0}
    assert verdicts == _exits.VERDICT and _exits.EXIT_USAGE == 2
    for command in ("compare", "plan", "watch-branch", "run --fail-if"):
        assert {0, 1, 3} <= set(STATUS[command]), f"{command}: a verdict has one status in all commands"
    assert set(compare.BISECT_STATUS.values()) | {EXIT_STOP} == set(STATUS["compare --bisect"])
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
    ("new", "plain", "bisect"), [("good", 0, 0), ("slow", 1, 1), ("few", 3, EXIT_SKIP), ("missing", 2, EXIT_STOP)]
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

    monkeypatch.setattr("dnsrig.comparison.compare.compare_runs", fault)
    arguments = ["compare", runs["good"], runs["good"], "--fail-if", "transfer_time > 150 %"]
    assert status(monkeypatch, *arguments) == _exits.EXIT_USAGE
    assert status(monkeypatch, *arguments, "--bisect") == EXIT_STOP
    monkeypatch.setattr("dnsrig.prediction.held_out.rows", fault)
    assert status(monkeypatch, "plan", "--from-run", runs["good"]) == _exits.EXIT_USAGE


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


BIND, KNOT = "bind@system", "knot@system"


def of_two_servers(folder: Path, slow: float = 1.0, invalid: Sequence[int] = (), repeats: int = 5) -> Path:
    """A run in which Knot takes ``slow`` times as long, and in which these repeats of BIND are invalid."""
    plan = synthetic.Plan(
        servers=[BIND, KNOT],
        zones=[10],
        repeats=repeats,
        samples=False,
        slow={(KNOT, 10, repeat): slow for repeat in range(1, repeats + 1)},
        outcomes=dict.fromkeys([(BIND, 10, repeat) for repeat in invalid], "invalid"),
    )
    return synthetic.build(folder, plan)


def test_a_variant_without_a_valid_trial_has_a_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The baseline is invalid as a whole, and nothing else is wrong."""
    run = of_two_servers(tmp_path / "run", invalid=range(1, 6))
    assert status(monkeypatch, "report", run) == _exits.EXIT_NO_VALID_TRIAL
    assert f"no trial is valid of server={BIND}" in " ".join(capsys.readouterr().err.split())
    assert status(monkeypatch, "compare", run, run) == _exits.EXIT_NO_VALID_TRIAL
    assert status(monkeypatch, "compare", run, run, "--fail-if", "transfer_time > 150 %") == 3
    assert status(monkeypatch, "report", of_two_servers(tmp_path / "one", invalid=[2])) == 0, "one of them is a gap"


@pytest.mark.parametrize(("slow", "repeats", "expected"), [(0.9, 5, 0), (3.0, 5, 1), (3.0, 4, 3)])
def test_a_verdict_inside_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: float, repeats: int, expected: int
) -> None:
    run = of_two_servers(tmp_path / "run", slow, repeats=repeats)
    rule = ["--fail-if", "transfer_time > 150 %"]
    assert status(monkeypatch, "compare", run, "--base", f"server={BIND}", *rule) == expected
    assert status(monkeypatch, "compare", run, *rule) == expected, "that is its baseline, too"


@pytest.mark.parametrize(
    "options",
    [
        ["--base", "server=nsd@system"],
        ["--base", "sever=bind@system"],
        ["--base", "bind@system"],
        ["--may-differ", "machine"],
        ["--fail-if", "transfer_tim > 1 %"],
    ],
)
def test_one_run_and_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    run = of_two_servers(tmp_path / "run")
    assert status(monkeypatch, "compare", run, *options) == 2
    assert not capsys.readouterr().out
    assert status(monkeypatch, "compare", run, run, "--base", f"server={BIND}") == 2, "two runs, and --base"


def test_rounds_that_drift_hide_no_regression_inside_a_run(tmp_path: Path) -> None:
    """Each round takes a fifth longer than the one before, and Knot a fifth longer than BIND in each."""
    slow = {(name, 10, r): 1.2**r * (1.0 + 3 * (name == KNOT)) for name in (BIND, KNOT) for r in range(1, 11)}
    made = synthetic.build(
        tmp_path / "run", synthetic.Plan(servers=[BIND, KNOT], zones=[10], repeats=10, samples=False, slow=slow)
    )
    run = Run.open(made)
    (row,) = [row.comparison for row in variant_table(run, "transfer_time_s") if row.comparison]
    limit = row.percent / 1.2 if row.percent else 0
    found = compare_within(run, {}, [], [thresholds.parse(f"transfer_time > {limit:.3f} %")])
    assert row.by_rounds and found.lines[0].comparison.percent == row.percent, "as the report has it"
    assert found.decision == "regression"
    ours, theirs = (
        [v / 1.2**r for r, v in enumerate(side.samples.numbers, 1)]
        for side in (found.lines[0].new, found.lines[0].base)
    )
    assert min(ours) > limit / 100 * max(theirs), "without the drift nobody doubts it"


class Nothing:
    """What executes no trial, because all are there."""

    def where(self) -> Where:
        return Where([0])

    def check(self, manifest: Manifest) -> None: ...

    def check_unchanged(self, manifest: Manifest) -> None: ...

    def execute(self, manifest: Manifest, directory: Path, progress: object) -> int:
        return 0


@pytest.mark.parametrize(("slow", "expected"), [(0.9, 0), (3.0, 1)])
def test_run_judges_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], slow: float, expected: int
) -> None:
    run = of_two_servers(tmp_path / "run", slow)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("dnsrig.cli.run.clean_machine", lambda console: None)
    monkeypatch.setattr("dnsrig.cli._on.executing", lambda on, at_once: contextlib.nullcontext(Nothing()))
    resume = ["run", "--resume", run, "--fail-if", "transfer_time > 150 %"]
    assert status(monkeypatch, *resume) == expected
    assert f"result: {'regression' if expected else 'pass'}" in capsys.readouterr().out

    def fails(*_: object) -> int:
        raise DnsrigError("the disk is nearly full")

    monkeypatch.setattr(Nothing, "execute", fails)
    assert status(monkeypatch, *resume) == 3, "not measured is no regression"
    assert status(monkeypatch, "run", "--resume", run) == 1
    assert status(monkeypatch, *resume, "--fail-if", "nonsense") == 2


def test_a_rule_without_a_baseline_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(experiment("Mine", "Which?") + '"dataset.zones" = [5, 10]\n')
    assert status(monkeypatch, "run", path, "--dry-run", "--fail-if", "transfer_time > 150 %") == 2
    assert "the experiment names none" in capsys.readouterr().err
