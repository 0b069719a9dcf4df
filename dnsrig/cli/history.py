"""`dnsrig history`: a metric over the versions of a server, measured version by version, and where it changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _order, _repository
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.history import History, Order
    from dnsrig.analysis.read import Run


def add(app: typer.Typer) -> None:
    app.command("history")(command)


def command(
    experiment: Annotated[
        str | None,
        typer.Argument(help="name of a built-in experiment, or a TOML file; without it nothing is measured"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder of the history: its runs, and what is drawn")] = Path(
        "history"
    ),
    versions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND@SOURCE,…",
            help="the versions, in the place of the servers under test of the experiment; those that DIR has enough "
            "trials of are not measured again; repeatable",
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick, standard, or published (the source's own numbers)")] = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="change one value of the experiment; repeatable"),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=1000, help="trials of each version; by default those of the experiment")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the order of trials; recorded either way")] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--with", metavar="RUN", help="a run made elsewhere that belongs to the history; repeatable"),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="a metric (`dnsrig list metrics`; its unit may be left out), by default the main one; repeatable",
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            help="auto: commits as their repository has them, else as number; number: by version number, as Debian sorts "
            "them; given: as --versions, then as measured"
        ),
    ] = "auto",
    repositories: _repository.Option = None,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="what may differ between the runs beside the server under test, as in `dnsrig compare`; repeatable",
        ),
    ] = None,
    exports: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="write DIR/export/FORMAT for another program: bencher, github-action-benchmark, openmetrics or otava; repeatable",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print what would be measured, and how long")] = False,
    max_trials: Annotated[int, typer.Option(help="refuse more of them at once, by mistake")] = 1000,
) -> None:
    """Measure EXPERIMENT with each of the versions, and tell between which of them a metric changed.

    A version that is new to DIR adds its own trials and no others, interleaved with those of the versions that are new
    with it. What was interrupted goes on. Only trials of one machine, one kernel and one dnsrig that were asked to do
    the same belong together: anything else is refused by name.

    Change points are looked for over the trials, with a permutation test (docs/explanation/history.md); from 5 trials
    on either side. Written into DIR: history.html, history.json and a chart a metric. `dnsrig history --out DIR` draws
    it again, without measuring.

    Examples: dnsrig history startup --versions bind@bookworm,bind@forky --repeats 10 --out history/startup;
    dnsrig history catalog-churn --versions 'bind@git:v9.18.8..v9.18.13' --out history/catalog-churn
    """
    from dnsrig.analysis.compare import metric_name

    _order.check(order)
    _repository.choose(repositories)
    if exports:
        from dnsrig.report.history_exports import check

        for format in exports:
            check(format)
    named = expanded(split(versions or []))
    if experiment is None and named:
        raise UsageError("which experiment?", hint="dnsrig history EXPERIMENT --versions …")
    if experiment is not None and not named:
        raise UsageError("which versions?", hint="e.g. --versions bind@bookworm,bind@forky")
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
        errors = _history.measure_lacking(request, out, may_differ or [])
    found = _history_of(out, runs or [], metric or [], _order.order(order, named), may_differ or [])
    _show(found, out, exports or [])
    if errors:
        from dnsrig.cli.run import missing

        raise missing(errors, out / "runs/*/*")


def split(texts: list[str]) -> list[str]:
    """Versions, each given by itself or several with commas between them; a comma within a build option separates
    none."""
    return [version for text in texts for version in re.split(r",\s*(?=[a-z][a-z-]*@)", text) if version]


def expanded(named: list[str]) -> list[str]:
    """Each range of commits as single versions."""
    from dnsrig.servers import sources

    return [single for name in named for single in sources.expand(name)]


def _history_of(out: Path, elsewhere: list[Path], metrics: list[str], order: Order, may_differ: list[str]) -> History:
    from dnsrig.analysis.history import history
    from dnsrig.analysis.read import Run
    from dnsrig.experiment.versions import runs_in

    runs = [*runs_in(out / "runs"), *map(Run.open, elsewhere)]
    if not any(run.trials for run in runs):
        raise UsageError(
            f"no trial of a history is in {out}", hint="dnsrig history EXPERIMENT --versions … --out DIR measures some"
        )
    _tell(runs)
    return history(runs, metrics=metrics, order=order, may_differ=may_differ)


def _show(found: History, out: Path, exports: list[str]) -> None:
    from dnsrig.report.history import as_text, write_history
    from dnsrig.report.history_exports import export

    written = write_history(found, out)
    console = _console.out()
    console.print(as_text(found))
    console.print(f"history: {written[1]}", soft_wrap=True)
    for path in [path for format in exports for path in export(found, format, out / "export" / format, out)]:
        console.print(str(path), soft_wrap=True)


def _tell(runs: list[Run]) -> None:
    complaints = _console.err(soft_wrap=True)
    for run in runs:
        for _, wrong in run.unreadable:
            complaints.print(visible(f"left out: {wrong}"))
