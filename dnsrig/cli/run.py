"""`dnsrig run`: execute an experiment, or resume a run."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dnsrig.cli import _console, _on, _options, _repository
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INTERRUPTED, EXIT_UNDECIDED, VERDICT, failing_as
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.stats.stopping import MOST_REPEATS
from dnsrig.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dnsrig.comparison.compare import TwoRuns
    from dnsrig.comparison.criterion import Criterion
    from dnsrig.experiment.preparation import Request
    from dnsrig.experiment.spread import Executing
    from dnsrig.rundir import Manifest, Scalar, TrialSpec
    from dnsrig.runs.run import Run

    Judge = Callable[[Run], int]


@dataclass(frozen=True)
class Ending:
    """How a run is reported and judged at its end."""

    rules: list[Criterion]
    as_json: bool
    bars: bool = False
    """Whether the terminal has a bar for each variant."""
    judge: Judge | None = None
    """Returns the exit status for a complete run; 0: the usual one."""
    exports: Sequence[str] = ()
    """Formats of `dnsrig export`."""


def add(app: typer.Typer) -> None:
    app.command("run")(command)


def command(
    context: typer.Context,
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="name of a built-in experiment (`dnsrig list experiments`), or a TOML file",
            autocompletion=_options.experiments,
        ),
    ] = None,
    scale: _options.Scale = "quick",
    settings: _options.Settings = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="trials of each variant; with --resume: the new total"),
    ] = None,
    precision: _options.Precision = "",
    most: _options.Most = MOST_REPEATS,
    within: _options.Within = "",
    seed: _options.Seed = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="execute the trials that RUN lacks; finished trials are kept")
    ] = None,
    redo_invalid: Annotated[
        bool,
        typer.Option(
            "--redo-invalid",
            help="with --resume: repeat invalid trials; their files are kept as *.invalid",
        ),
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="METRIC > N % or METRIC < N %, in percent of the variant's baseline in this run: a regression; repeatable",
        ),
    ] = None,
    dry_run: _options.DryRun = False,
    runs: _options.Runs = Path("runs"),
    at_once: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="number of trials at a time, each on its own CPU; only under User-mode Linux"
        ),
    ] = 1,
    on: _on.Option = "",
    machines: _on.Machines = None,
    max_trials: _options.MaxTrials = 1000,
    repositories: _repository.Option = None,
    debug: _repository.Debug = "",
    authorized: _options.Authorized = None,
    as_json: _options.Json = False,
    quiet: _options.Quiet = False,
) -> None:
    """Run an experiment and print its report.

    Examples:

        dnsrig run tour
        dnsrig run many-zones --scale standard --repeats 5 \\
            --set 'zones=[1000,5000]'
        dnsrig run --resume runs/tour/20260101T120000Z-abcd --repeats 20

    Every variant of the experiment's matrix is measured several times, and the variants take turns.

    --resume continues a run. With --repeats it adds trials, in new rounds with an order of their own. Decide on the
    number of repeats before you look at the results: if you repeat until a difference shows, you find one by chance.
    The experiment of a run cannot change, so --set and --scale are refused.

    --precision repeats until the intervals are narrow, and decides by their widths alone, so it does not find a
    difference by chance: `dnsrig run tour --precision 5%`. --repeats is then the least number.

    --fail-if makes the run a check: each variant is compared with its baseline, like `dnsrig compare RUN` does.

    With --on, rounds are spread over equal machines, which take turns, so that each measures every variant equally
    often. With --machines, the hosts of one trial are on several machines: generators there, the server under test
    here.

    Exit status: 0 everything was measured, whatever the result; 1 an error, or trials are missing; 4 a part of the
    report is missing; 6 no trial of some variant is valid. With --fail-if: 0 every rule passes; 1 a regression; 3
    undecided, or the run is incomplete.
    """
    from dnsrig.comparison import thresholds
    from dnsrig.experiment.preparation import Request
    from dnsrig.experiment.runner import check_folders

    console = _console.progress(quiet)
    rules = [thresholds.parse(text) for text in fail_if or []]
    if redo_invalid and resume is None:
        raise UsageError("--redo-invalid needs a run to resume", hint="dnsrig run --resume RUN --redo-invalid")
    if as_json and dry_run:
        raise UsageError("--json with --dry-run: there are no results", hint="leave one of them out")
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
            need_root(manifest.specs.values())
            _resume.check_authorized(manifest, _options.addresses(authorized or []))
            _execute(
                _resume.prepare(manifest, resume, more, executing), resume, console, executing, Ending(rules, as_json)
            )
        return
    if experiment is None:
        raise UsageError(
            "no experiment is given", hint="`dnsrig list experiments` lists them; `dnsrig run tour` is a good start"
        )
    check_folders(runs)
    _repository.choose(repositories)
    changes = [*(settings or []), *_repository.settings(debug)]
    with _on.executing(on, at_once) as executing:
        request = Request(
            experiment,
            scale,
            changes,
            repeats,
            seed,
            max_trials,
            until=_options.until(precision, repeats, most, within),
            where=executing.where(),
            machines=machines,
            authorized=_options.addresses(authorized or []),
        )
        run_experiment(request, runs, console, executing, Ending(rules, as_json), dry_run=dry_run)


def run_experiment(
    request: Request,
    runs: Path,
    console: Console,
    executing: Executing,
    ending: Ending,
    *,
    dry_run: bool,
) -> None:
    """Execute the experiment of ``request`` and print its report, or print what would be executed."""
    from dnsrig.experiment import preparation

    with _judging(ending.rules) if ending.judge is None else failing_as(EXIT_UNDECIDED):
        if ending.rules:
            _check_rules(ending.rules, preparation.draft(request).document.baseline)
        if dry_run:
            _dry_run(request)
        else:
            _start(request, runs, console, executing, ending)


def _judging(rules: list[Criterion]) -> contextlib.AbstractContextManager[None]:
    """With rules, exit status 1 means a regression, so no error may end with it."""
    return failing_as(EXIT_UNDECIDED) if rules else contextlib.nullcontext()


def _check_rules(rules: list[Criterion], baseline: Mapping[str, Scalar]) -> None:
    """Refuse, before anything is measured, metrics that do not exist, and rules without a baseline."""
    from dnsrig.comparison.compare import metric_name

    for rule in rules:
        metric_name(rule.metric, [])
    if rules and not baseline:
        raise UsageError(
            "--fail-if needs a baseline: the experiment names none, or --set took it out of the matrix",
            hint="name the variant that the others are compared with: --set 'baseline={AXIS=VALUE}'",
        )


def _dry_run(request: Request) -> None:
    from dnsrig.cli._dry_run import show

    show(request)


def _start(
    request: Request,
    runs: Path,
    console: Console,
    executing: Executing,
    ending: Ending,
) -> None:
    from dnsrig.experiment import preparation, runner

    drafted = preparation.draft(request)  # bad input is reported before anything is installed or made
    need_root(drafted.specs)
    try:
        manifest = preparation.prepare(request, lambda text: console.print(visible(text), soft_wrap=True), drafted)
    except KeyboardInterrupt:
        complain("interrupted before the first trial; the cache has no incomplete files")
        sys.exit(EXIT_INTERRUPTED)
    executing.check(manifest)
    directory = runner.create(manifest, runs)
    console.print(f"run {directory}")
    with resumable(directory):
        _execute(manifest, directory, console, executing, ending)


def need_root(specs: Iterable[TrialSpec] | None = None) -> None:
    """Refuse to go on without root, unless all trials with ``specs`` only ask servers that run already."""
    from dnsrig.experiment import preparation, running_servers

    if os.geteuid() == 0:
        return
    if specs is not None and not preparation.needs_root(specs):
        complain(running_servers.NEEDS_ROOT)
    else:
        raise DnsrigError(
            "making hosts (network namespaces) needs root",
            hint="run it again as root: sudo .venv/bin/dnsrig … (sudo does not find commands of a virtual environment by name)",
        )


def _execute(
    manifest: Manifest,
    directory: Path,
    console: Console,
    executing: Executing,
    ending: Ending,
) -> None:
    from dnsrig.cli import report
    from dnsrig.comparison.compare import compare_within
    from dnsrig.report import export

    errors = measure(manifest, directory, console, executing)
    written = report.write(directory)
    judged = compare_within(written.run, {}, [], ending.rules) if ending.rules and not errors else None
    if ending.as_json:
        report.print_json(written, judged)
    else:
        report.show(written, bars=ending.bars)
    for format in ending.exports:
        for path in export(written.run, format, directory / "export"):
            console.print(str(path), soft_wrap=True, highlight=False, markup=False)
    if errors:
        raise missing(errors, directory)
    if judged and (status := _verdict(judged, ending.as_json)):
        raise typer.Exit(status)
    if ending.judge is not None and (status := ending.judge(written.run)):
        raise typer.Exit(status)
    report.end(written.run)


def _verdict(found: TwoRuns, as_json: bool) -> int:
    """Print the verdict of each rule on each variant; returns the exit status."""
    from dnsrig.report import comparison

    console = _console.prose(as_json)
    for line in [*comparison.warnings(found), *comparison.sentences(found), comparison.whole_in_a_line(found)]:
        console.print(visible(line), soft_wrap=True)
    return VERDICT[found.decision]


def missing(errors: int, directory: Path) -> DnsrigError:
    """The error that reports trials missing from the run in ``directory``."""
    from dnsrig.rundir import resume_command

    return DnsrigError(
        f"{errors} trial(s) failed because of dnsrig or the machine, and are missing from the results",
        hint=f"their logs are in {directory}/trials/*/*.aborted; repeat them with `{resume_command(directory)}`",
    )


def measure(manifest: Manifest, directory: Path, console: Console, executing: Executing | None = None) -> int:
    """Execute the trials that the run lacks, with progress on ``console``; returns how many failed because of dnsrig or
    the machine.

    Without ``executing``: on this machine, one trial at a time.
    """
    from dnsrig.cli._progress import watching
    from dnsrig.experiment import runner
    from dnsrig.experiment.sequential import execute_until_narrow

    with resumable(directory):
        if not manifest.machines:
            clean_machine(console)
        place = executing or runner.Local()
        with watching(console) as progress:
            return execute_until_narrow(
                manifest,
                directory,
                lambda round: place.execute(round, directory, progress),
                lambda: console.print(_out_of_time(manifest), soft_wrap=True),
            )


def _out_of_time(manifest: Manifest) -> str:
    until = manifest.until
    assert until is not None
    return (
        f"an interval is still wider than ±{until.percent:g} % (--precision), but the {until.within_s:g} s of --within are "
        "over; --within 5m allows more repeats"
    )


@contextlib.contextmanager
def resumable(directory: Path) -> Iterator[None]:
    """If an interrupt arrives within, the command ends, and prints how to continue the run in ``directory``."""
    from dnsrig.rundir import resume_command

    try:
        yield
    except KeyboardInterrupt:
        complain("interrupted; finished trials are kept", f"continue with `{resume_command(directory)}`")
        sys.exit(EXIT_INTERRUPTED)


def clean_machine(console: Console) -> None:
    """Remove what interrupted trials left behind, and report other trials that are running on this machine."""
    from dnsrig.lab import ledger, removal

    removed, left = removal.clean()
    if removed:
        console.print(f"removed what {len(removed)} interrupted trial(s) had left behind")
    if left:
        complain(f"cannot remove {', '.join(left)}", "`dnsrig clean` shows more")
    if others := ledger.live():
        complain(
            f"another trial of dnsrig is running on this machine ({', '.join(others)}): they disturb each other",
            "the results are marked; better wait for the other trial to end, and run this one again",
        )
