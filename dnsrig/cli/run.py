"""`dnsrig run`: execute an experiment, or resume a run."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dnsrig.cli import _console, _on, _repository
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INTERRUPTED, EXIT_UNDECIDED, VERDICT, failing_as
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dnsrig.analysis.read import Run
    from dnsrig.analysis.thresholds import Rule
    from dnsrig.experiment.preparation import Request
    from dnsrig.experiment.runner import Executing
    from dnsrig.rundir import Manifest, Scalar


def add(app: typer.Typer) -> None:
    app.command("run")(command)


def command(
    context: typer.Context,
    experiment: Annotated[
        str | None, typer.Argument(help="name of a built-in experiment (`dnsrig list experiments`), or a TOML file")
    ] = None,
    scale: Annotated[str, typer.Option(help="quick, standard, or published (the source's own numbers)")] = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="change one value of the experiment, or the values of an axis; repeatable",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="how often each variant is measured; with --resume: how often in all"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the order of trials; recorded either way")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="execute what RUN lacks; finished trials are not touched")
    ] = None,
    redo_invalid: Annotated[
        bool,
        typer.Option(
            "--redo-invalid",
            help="with --resume: measure invalid trials again; what they left is kept beside them as *.invalid",
        ),
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="METRIC > N % or METRIC < N %: what of a variant, in percent of its baseline in this run, is a regression; "
            "repeatable",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print matrix, order and an estimate of the time")] = False,
    runs: Annotated[Path, typer.Option(help="folder of the runs")] = Path("runs"),
    at_once: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="so many trials at a time, each on a CPU of its own: only under User-mode Linux"
        ),
    ] = 1,
    on: _on.Option = "",
    machines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="where the machines are that hosts of the experiment name: a TOML file, as of --on"
        ),
    ] = None,
    max_trials: Annotated[int, typer.Option(help="refuse a matrix that is larger, by mistake")] = 1000,
    repositories: _repository.Option = None,
    debug: _repository.Debug = "",
) -> None:
    """Execute EXPERIMENT: every variant of its matrix, repeated and interleaved; then its report.

    A run goes on with --resume; with --repeats as well it gets more of them, in rounds of their own order. Decide on
    their number before you look at the results: repeating until a difference shows finds one by chance. Its experiment
    cannot be changed: --set and --scale are refused.

    --fail-if makes the run a check: each variant is compared with its baseline, as `dnsrig compare RUN` does.

    Exit status: 0 if all was measured, whatever came of it; 1 for an error, or if trials are missing; 4 if a part of
    the report is missing; 6 if no trial of some variant is valid. With --fail-if: 0 if every rule passes, 1 for a
    regression, 3 if that cannot be decided, or if the run could not be completed.

    With --on, rounds are spread over equal machines, which take turns: each measures every variant equally often. With
    --machines, hosts of one trial are on several: generators there, the server under test here.

    Examples: dnsrig run tour; dnsrig run many-zones --scale standard --set 'zones=[1000,5000]' --repeats 5;
    dnsrig run --resume runs/tour/20260101T120000Z-abcd --repeats 20
    """
    from dnsrig.analysis import thresholds
    from dnsrig.experiment import preparation
    from dnsrig.experiment.preparation import Request
    from dnsrig.experiment.runner import check_folders

    console = _console.err()
    rules = [thresholds.parse(text) for text in fail_if or []]
    if redo_invalid and resume is None:
        raise UsageError("--redo-invalid is for a run that is there", hint="dnsrig run --resume RUN --redo-invalid")
    if resume is not None:
        from dnsrig.cli import _resume

        _resume.check_options(context, resume)
        more = _resume.More(repeats, seed, max_trials, redo_invalid)
        with _judging(rules), resumable(resume), _on.executing(on, at_once) as executing:
            manifest = _resume.read(resume)
            _check_rules(rules, manifest.baseline)
            if dry_run:
                _resume.show(manifest, resume, more, executing)
                return
            need_root()
            _execute(_resume.prepare(manifest, resume, more, executing), resume, console, executing, rules)
        return
    if experiment is None:
        raise UsageError(
            "which experiment?", hint="`dnsrig list experiments` shows them; `dnsrig run tour` is a good first one"
        )
    check_folders(runs)
    _repository.choose(repositories)
    changes = [*(settings or []), *_repository.settings(debug)]
    with _judging(rules), _on.executing(on, at_once) as executing:
        request = Request(
            experiment, scale, changes, repeats, seed, max_trials, where=executing.where(), machines=machines
        )
        if rules:
            _check_rules(rules, preparation.draft(request)[0].baseline)
        if dry_run:
            _dry_run(request)
        else:
            _start(request, runs, console, executing, rules)


def _judging(rules: list[Rule]) -> contextlib.AbstractContextManager[None]:
    """With rules, 1 is a regression, and no error may end as that."""
    return failing_as(EXIT_UNDECIDED) if rules else contextlib.nullcontext()


def _check_rules(rules: list[Rule], baseline: Mapping[str, Scalar]) -> None:
    """Refuse, before anything is measured, metrics that do not exist, and rules without a baseline."""
    from dnsrig.analysis.compare import metric_name

    for rule in rules:
        metric_name(rule.metric, [])
    if rules and not baseline:
        raise UsageError(
            "--fail-if, and the experiment names no baseline",
            hint="name the variant that others are compared with: --set 'baseline={AXIS=VALUE}'",
        )


def _dry_run(request: Request) -> None:
    from dnsrig.cli._dry_run import show

    show(request)


def _start(request: Request, runs: Path, console: Console, executing: Executing, rules: list[Rule]) -> None:
    from dnsrig.experiment import preparation, runner

    preparation.draft(request)  # bad input is told before anything is installed or made
    need_root()
    try:
        manifest = preparation.prepare(request, lambda text: console.print(visible(text), soft_wrap=True))
    except KeyboardInterrupt:
        complain("interrupted before the first trial; what was made for the cache is whole or absent")
        sys.exit(EXIT_INTERRUPTED)
    executing.check(manifest)
    directory = runner.create(manifest, runs)
    console.print(f"run {directory}")
    with resumable(directory):
        _execute(manifest, directory, console, executing, rules)


def need_root() -> None:
    if os.geteuid() != 0:
        raise DnsrigError("making hosts (network namespaces) needs root", hint="run it again with sudo")


def _execute(manifest: Manifest, directory: Path, console: Console, executing: Executing, rules: list[Rule]) -> None:
    from dnsrig.cli.report import end

    errors = measure(manifest, directory, console, executing)
    concluded = _conclude(directory)
    if errors:
        raise missing(errors, directory)
    if rules and (status := _verdict(concluded, rules)):
        raise typer.Exit(status)
    end(concluded)


def _verdict(run: Run, rules: list[Rule]) -> int:
    """Print the verdict of each rule on each variant; returns the exit status."""
    from dnsrig.analysis.compare import compare_within
    from dnsrig.report import comparison

    found = compare_within(run, {}, [], rules)
    console = _console.out()
    for line in [*comparison.warnings(found), *comparison.sentences(found), comparison.whole_in_a_line(found)]:
        console.print(visible(line), soft_wrap=True)
    return VERDICT[found.decision]


def missing(errors: int, directory: Path) -> DnsrigError:
    """That trials of the run in ``directory`` are missing from the results."""
    from dnsrig.rundir import resume_command

    return DnsrigError(
        f"{errors} trial(s) failed by a fault of dnsrig or the machine, and are missing from the results",
        hint=f"their logs are in {directory}/trials/*/*.aborted; repeat them with `{resume_command(directory)}`",
    )


def measure(manifest: Manifest, directory: Path, console: Console, executing: Executing | None = None) -> int:
    """Execute what the run lacks, with its progress on ``console``; returns how many trials failed by our own fault.

    Here, one trial at a time, where nothing else is said.
    """
    from dnsrig.cli._progress import LiveProgress, PlainProgress
    from dnsrig.experiment import runner

    with resumable(directory), contextlib.ExitStack() as stack:
        if not manifest.machines:
            clean_machine(console)
        live = console.is_terminal
        progress = stack.enter_context(LiveProgress(console)) if live else PlainProgress(console)
        return (executing or runner.Local()).execute(manifest, directory, progress)


@contextlib.contextmanager
def resumable(directory: Path) -> Iterator[None]:
    """If it is interrupted within, the command ends, and says how the run in ``directory`` goes on."""
    from dnsrig.rundir import resume_command

    try:
        yield
    except KeyboardInterrupt:
        complain("interrupted; finished trials are kept", f"go on with `{resume_command(directory)}`")
        sys.exit(EXIT_INTERRUPTED)


def clean_machine(console: Console) -> None:
    """Remove what interrupted trials left behind, and say what else measures on this machine."""
    from dnsrig.lab import ledger, removal

    removed, left = removal.clean()
    if removed:
        console.print(f"removed what {len(removed)} interrupted trial(s) had left behind")
    if left:
        complain(f"cannot remove {', '.join(left)}", "`dnsrig clean` tells more")
    if others := ledger.live():
        complain(
            f"another trial of dnsrig is running on this machine ({', '.join(others)}): both measure each other",
            "the results are marked; better wait for it to end and run this one again",
        )


def _conclude(directory: Path) -> Run:
    from dnsrig.cli.report import show

    return show(directory)
