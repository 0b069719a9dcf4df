"""What `dnsrig history` measures: the trials that are missing in its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from dnsrig.analysis import history, versions
from dnsrig.analysis.read import Run
from dnsrig.analysis.regressions import News, shows_again
from dnsrig.analysis.statistics import FEWEST_REPEATS
from dnsrig.analysis.versions import Version
from dnsrig.cli import _console, _dry_run
from dnsrig.cli.run import measure, missing, need_root
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import preparation, runner
from dnsrig.experiment.model import Document
from dnsrig.experiment.preparation import Request
from dnsrig.experiment.versions import cases, lacking, runs_in, unlike
from dnsrig.report import figures, write_report
from dnsrig.servers import sources
from dnsrig.servers.builds.errors import BuildFailed
from dnsrig.text import visible

ANOTHER = "name another folder with --out, or give the values of its runs"


def show_lacking(request: Request, out: Path) -> None:
    """Print what would be measured; nothing is made or installed."""
    drafted = preparation.draft(request)
    found = {name: sources.look(name) for name in request.versions}
    wanted = {name: versions.of(server) if server else None for name, server in found.items()}
    todo = lacking(runs_in(out / "runs"), wanted, cases(drafted.points, request.versions), drafted.repeats)
    for more, names in todo.items():
        _dry_run.show(replace(request, versions=names, repeats=more))
    if not todo:
        _console.out().print("nothing is missing")


def measure_lacking(request: Request, out: Path, may_differ: list[str], *, quiet: bool = False) -> int:
    """Measure the trials of ``request`` that the history in ``out`` lacks; returns how many failed because of dnsrig or
    the machine."""
    console = _console.progress(quiet)
    drafted = preparation.draft(request)  # bad input is reported before anything is installed or made
    runner.check_folders(out / "runs")
    need_root()
    existing = runs_in(out / "runs")
    _check_same(request, drafted.document, existing, may_differ)
    errors = sum(_go_on(run, console) for run in existing)
    wanted = _built(request.versions, console)
    if drafted.repeats < FEWEST_REPEATS:
        console.print(
            f"with {figures.count(drafted.repeats, 'repeat')} a change shows only if several neighbouring versions have"
            f" {FEWEST_REPEATS} trials together"
        )
    todo = lacking(runs_in(out / "runs"), wanted, cases(drafted.points, request.versions), drafted.repeats)
    for more, names in todo.items():
        manifest = preparation.prepare(replace(request, versions=names, repeats=more), console.print)
        history.check_alike([*(run.manifest for run in existing), manifest], may_differ)
        directory = runner.create(manifest, out / "runs")
        console.print(visible(f"run {directory}: {', '.join(names)}"))
        errors += measure(manifest, directory, console)
        write_report(directory)
    return errors


def is_confirmed(one: News, request: Request, folder: Path, *, quiet: bool = False) -> bool:
    """Whether a regression shows again when both versions are measured in one run, which becomes a part of the
    history."""
    console = _console.progress(quiet)
    servers = [point.version.server.name for point in (one.change.last, one.change.first)]
    manifest = preparation.prepare(replace(request, versions=servers), console.print)
    directory = runner.create(manifest, folder / "runs")
    console.print(visible(f"run {directory}: once more, interleaved: {', '.join(servers)}"))
    if errors := measure(manifest, directory, console):
        raise missing(errors, directory)
    write_report(directory)
    confirmed = shows_again(one, Run.open(directory))
    if not confirmed:
        console.print(visible(f"not confirmed: {one.series.label}, {one.series.metric.name}, {' to '.join(servers)}"))
    return confirmed


def _built(names: list[str], console: Console) -> dict[str, Version]:
    """Name -> version; versions that cannot be built are reported and left out."""
    found = {}
    for name in names:
        try:
            found[name] = versions.of(preparation.installed(name, console.print))
        except BuildFailed as error:
            console.print(visible(f"left out: {error.message}"))
    return found


def _check_same(request: Request, document: Document, existing: list[Run], may_differ: list[str]) -> None:
    """Refuse another experiment, and the same experiment with other values: they need a history of their own."""
    name = Path(request.experiment).stem
    for run in existing:
        if run.manifest.experiment != name:
            raise UsageError(f"the folder has the history of {run.manifest.experiment}, not of {name}", hint=ANOTHER)
        if other := [key for key in unlike(document, run) if key not in may_differ]:
            raise UsageError(f"{', '.join(other)}: the run {run.manifest.run} had another value", hint=ANOTHER)


def _go_on(run: Run, console: Console) -> int:
    """Finish an interrupted run if the machine is unchanged. Otherwise another run measures its missing trials."""
    if not runner.missing(run.manifest, run.directory):
        return 0
    try:
        runner.check_unchanged(run.manifest)
    except DnsrigError as error:
        console.print(visible(f"{run.directory}: {error.message}; its missing trials are measured in another run"))
        return 0
    console.print(visible(f"continuing {run.directory}"))
    errors = measure(run.manifest, run.directory, console)
    write_report(run.directory)
    return errors
