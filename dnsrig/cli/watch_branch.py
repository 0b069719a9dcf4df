"""`dnsrig watch-branch`: the newest commit of a branch built and measured, and what it made worse; for cron."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _order, _repository
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED, failing_as
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.history import History
    from dnsrig.analysis.regressions import Key, News
    from dnsrig.experiment.preparation import Request

ALPHA = 0.01
"""Of each look. Each night looks at the whole again, so more of them tell of a change by chance than one look would."""
WINDOW = 30
"""Newest versions that are looked at: what lies further back was told, or was not to be seen."""


def add(app: typer.Typer) -> None:
    app.command("watch-branch")(command)


def command(
    branch: Annotated[
        str, typer.Argument(metavar="KIND@git:BRANCH", help="e.g. bind@git:main; build options after it")
    ],
    experiments: Annotated[list[str], typer.Argument(help="built-in experiments, or TOML files")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="a history of each experiment is kept in a folder of it")
    ] = Path("history"),
    scale: Annotated[str, typer.Option(help="quick, standard, or published (the source's own numbers)")] = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="change one value of every experiment; repeatable"),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="trials of each commit")] = 10,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="a metric, by default the main one of each experiment; repeatable"),
    ] = None,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="what may differ between nights beside the server, as in `dnsrig compare`; repeatable"
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=0.002, max=0.5, help="how often an experiment without a change may tell of one, a look")
    ] = ALPHA,
    repositories: _repository.Option = None,
) -> None:
    """Build the newest commit of BRANCH if it is new, measure EXPERIMENTS with it, and tell what changed.

    Where it looks worse, the commits before and after the change are measured again, interleaved in one run: nights
    differ, too. What this does not confirm is noted on standard error, and no regression.

    Standard output is one text, and nothing where nothing changed: cron mails what there is. A change is told once,
    in the night in which it is first seen. Progress goes to standard error.

    Exit status: 0 if nothing is worse, 1 for a regression, 2 for bad input, 3 if it could not be measured, as where the
    commit cannot be built or trials failed.

    Example: dnsrig watch-branch bind@git:main startup zone-load --out /var/lib/dnsrig/bind 2>> /var/log/dnsrig.log
    """
    from dnsrig.analysis.compare import metric_name
    from dnsrig.experiment.preparation import Request

    with failing_as(EXIT_UNDECIDED):
        _repository.choose(repositories)
        names = [Path(experiment).stem for experiment in experiments]
        if len(set(names)) != len(names):
            raise UsageError("an experiment is named twice", hint="give each once")
        for name in metric or []:
            metric_name(name, [])
        version = _newest(branch)
        request = Request("", scale, settings or [], repeats, versions=[version])
        requests = [replace(request, experiment=experiment) for experiment in experiments]
        _build(version, requests)
        found = _measured(branch, requests, out, metric or [], may_differ or [], alpha)
    if found:
        _console.out().print(_text(version, found, out), soft_wrap=True)
    raise typer.Exit(EXIT_REGRESSION if any(one.is_regression for one in found) else 0)


def _newest(branch: str) -> str:
    """The version that is the newest commit of ``branch`` now, with the build options given."""
    from dnsrig.servers import sources
    from dnsrig.servers.builds import reference
    from dnsrig.servers.sources import git

    server, source = sources.parse(branch)
    if not git.takes(source) or (wanted := reference.parse(source)).is_range:
        raise UsageError(f"{branch} is no branch", hint="write KIND@git:BRANCH, e.g. bind@git:main")
    return f"{server.kind}@{wanted.at(git.commit(server, wanted.ref)).source}"


def _build(version: str, requests: list[Request]) -> None:
    """What is asked for is checked first: a build takes minutes."""
    from dnsrig.experiment import preparation

    for request in requests:
        preparation.draft(request)
    preparation.installed(version, _console.err().print)


def _measured(
    branch: str, requests: list[Request], out: Path, metrics: list[str], may_differ: list[str], alpha: float
) -> list[News]:
    """Measure what is new, and return what was not told yet.

    It is written down as told before it is printed: a text that got lost is still in the folder, and one that comes
    each night is not read.
    """
    from dnsrig.analysis.history import history
    from dnsrig.analysis.regressions import news
    from dnsrig.cli import _history
    from dnsrig.experiment.versions import runs_in
    from dnsrig.experiment.watched import Watched
    from dnsrig.report.history import write_history

    def told(folder: Path) -> History:
        runs, order = runs_in(folder / "runs"), _order.order("auto")
        return history(runs, metrics=metrics, order=order, may_differ=may_differ, alpha=alpha, newest=WINDOW)

    watched = Watched.read(out, branch)
    found: list[News] = []
    seen: list[Key] = []
    errors = 0
    for request in requests:
        folder = out / Path(request.experiment).stem
        errors += _history.measure_lacking(request, folder, may_differ)
        fresh = news(told(folder), watched.told)
        seen += [one.key for one in fresh]
        found += [one for one in fresh if not one.is_regression or _history.is_confirmed(one, request, folder)]
        write_history(told(folder), folder)
    if errors:
        raise DnsrigError(
            f"{errors} trial(s) failed by a fault of dnsrig or the machine", hint="the same command goes on with them"
        )
    watched.tell(seen).write(out)
    return found


def _text(version: str, found: list[News], out: Path) -> str:
    from dnsrig.report.history.table import sentence

    worse = sum(one.is_regression for one in found)
    lines = [f"{version}: {worse} worse, {len(found) - worse} otherwise changed"]
    for one in found:
        name = one.key[0]
        lines.append(f"{one.change.kind}: {name}, {one.series.label}, {one.series.metric.name}: {sentence(one.change)}")
    pages = dict.fromkeys(out / one.key[0] / "history.html" for one in found)
    return "\n".join(visible(line) for line in [*lines, *(f"page: {page}" for page in pages)])
