"""`dnsrig history`: a metric over the versions of a server, measured version by version, and where it changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _options, _order, _repository
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.comparison.history import History, Order
    from dnsrig.runs.run import Run


def add(app: typer.Typer) -> None:
    app.command("history")(command)


def command(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="name of a built-in experiment, or a TOML file; without it nothing is measured",
            autocompletion=_options.experiments,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="folder of the history: its runs, its page and its charts")
    ] = Path("history"),
    versions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND@SOURCE,…",
            help="versions, which replace the experiment's servers under test; versions with enough trials in DIR are "
            "not measured again; repeatable",
        ),
    ] = None,
    scale: _options.Scale = "quick",
    settings: _options.Settings = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=1000, help="trials of each version; default: as in the experiment")
    ] = None,
    seed: _options.Seed = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="RUN", help="run from elsewhere to add to the history; repeatable"),
    ] = None,
    metric: _options.Metrics = None,
    sort: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="order of the versions: auto (commits in the order of their repository, otherwise like number), number "
            "(by version number, like Debian), or given (like --versions, then as measured)",
        ),
    ] = "auto",
    repositories: _repository.Option = None,
    may_differ: _options.MayDiffer = None,
    exports: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="write DIR/export/FORMAT for another program: bencher, github-action-benchmark, openmetrics or otava; repeatable",
        ),
    ] = None,
    dry_run: _options.DryRun = False,
    max_trials: _options.MaxTrials = 1000,
    as_json: _options.Json = False,
    quiet: _options.Quiet = False,
) -> None:
    """Measure versions of a server; find where a metric changed.

    Examples:

        dnsrig history startup --versions bind@bookworm,bind@forky --repeats 10
        dnsrig history catalog-churn --versions 'bind@git:v9.18.8..v9.18.13' \\
            --out history/catalog-churn

    A version that is new in DIR adds its own trials and no others. New versions take turns. An interrupted measurement
    continues. Only trials of one machine, one kernel and one dnsrig, with the same values of the experiment, belong to
    one history; any other difference is refused and named.

    Change points are found with a permutation test over the trials (docs/explanation/history.md), from 5 trials on
    either side. DIR gets history.html, history.json and a chart for each metric. `dnsrig history --out DIR` draws them
    again, without measuring.
    """
    from dnsrig.comparison.compare import metric_name

    _order.check(sort)
    _repository.choose(repositories)
    if exports:
        from dnsrig.report.history_exports import check

        for format in exports:
            check(format)
    if as_json and dry_run:
        raise UsageError("--json with --dry-run: there are no results", hint="leave one of them out")
    named = expanded(split(versions or []))
    if experiment is None and named:
        raise UsageError("no experiment is given", hint="dnsrig history EXPERIMENT --versions …")
    if experiment is not None and not named:
        raise UsageError("no versions are given", hint="e.g. --versions bind@bookworm,bind@forky")
    if experiment is None and dry_run:
        raise UsageError("without an experiment nothing is measured", hint="leave --dry-run out, or name an experiment")
    errors = 0
    if experiment is not None:
        from dnsrig.cli import _history
        from dnsrig.experiment.preparation import Request

        for name in metric or []:
            metric_name(name, [])
        request = Request(experiment, scale, settings or [], repeats, seed, max_trials, named)
        if dry_run:
            _history.show_lacking(request, out)
            return
        errors = _history.measure_lacking(request, out, may_differ or [], quiet=quiet)
    found = _history_of(out, runs or [], metric or [], _order.order(sort, named), may_differ or [])
    _show(found, out, exports or [], as_json)
    if errors:
        from dnsrig.cli.run import missing

        raise missing(errors, out / "runs/*/*")


def split(texts: list[str]) -> list[str]:
    """Single versions, from texts that may contain several with commas between them. A comma within a build option does
    not separate versions."""
    return [version for text in texts for version in re.split(r",\s*(?=[a-z][a-z-]*@)", text) if version]


def expanded(named: list[str]) -> list[str]:
    """Versions, with each range of commits expanded to single versions."""
    from dnsrig.servers import sources

    return [single for name in named for single in sources.expand(name)]


def _history_of(out: Path, elsewhere: list[Path], metrics: list[str], order: Order, may_differ: list[str]) -> History:
    from dnsrig.comparison.history import history
    from dnsrig.experiment.versions import runs_in
    from dnsrig.runs.run import Run

    runs = [*runs_in(out / "runs"), *map(Run.open, elsewhere)]
    if not any(run.trials for run in runs):
        raise UsageError(
            f"{out} has no trial of a history", hint="to measure some: dnsrig history EXPERIMENT --versions … --out DIR"
        )
    _complain_of_unreadable(runs)
    return history(runs, metrics=metrics, order=order, may_differ=may_differ)


def _show(found: History, out: Path, exports: list[str], as_json: bool) -> None:
    from dnsrig.report.history import as_text, data, write_history
    from dnsrig.report.history_exports import export

    written = write_history(found, out)
    console = _console.prose(as_json)
    if as_json:
        _console.print_document(data.as_json(found, out))
    else:
        console.print(as_text(found))
    console.print(f"history: {written[1]}", soft_wrap=True)
    for path in [path for format in exports for path in export(found, format, out / "export" / format, out)]:
        console.print(str(path), soft_wrap=True)


def _complain_of_unreadable(runs: list[Run]) -> None:
    complaints = _console.err(soft_wrap=True)
    for run in runs:
        for _, wrong in run.unreadable:
            complaints.print(visible(f"left out: {wrong}"))
