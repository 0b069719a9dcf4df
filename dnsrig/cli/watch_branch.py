"""`dnsrig watch-branch`: measure the newest commit of a branch and report what it made worse; for cron."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _options, _order, _repository
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED, failing_as
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.comparison.history import History, Key, News
    from dnsrig.experiment.preparation import Request

ALPHA = 0.01
"""Probability of a false report in one look. Every night looks at the whole history again, so false reports add up."""
WINDOW = 30
"""Number of newest versions that are examined. An older change was reported before, or cannot be seen."""


def add(app: typer.Typer) -> None:
    app.command("watch-branch")(command)


def command(
    branch: Annotated[
        str, typer.Argument(metavar="KIND@git:BRANCH", help="branch, e.g. bind@git:main, with build options after it")
    ],
    experiments: Annotated[
        list[str], typer.Argument(help="built-in experiments, or TOML files", autocompletion=_options.experiments)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder of the histories, one for each experiment")] = Path(
        "history"
    ),
    scale: _options.Scale = "quick",
    settings: _options.Settings = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="trials of each commit")] = 10,
    metric: _options.Metrics = None,
    may_differ: _options.MayDiffer = None,
    alpha: Annotated[
        float, typer.Option(min=0.002, max=0.5, help="probability of a false report for each experiment and night")
    ] = ALPHA,
    repositories: _repository.Option = None,
    quiet: _options.Quiet = False,
) -> None:
    """Measure a branch's newest commit and report regressions.

    Example: dnsrig watch-branch bind@git:main startup zone-load --out /var/lib/dnsrig/bind 2>> /var/log/dnsrig.log

    If the newest commit of the branch is new, builds it, measures EXPERIMENTS with it, and prints what changed. If
    something looks worse, the commits before and after the change are measured again in one run, where they take turns,
    because nights differ, too. A regression that this does not confirm is only noted on standard error.

    Standard output is one text, and empty if nothing changed, so that cron sends mail only about changes. A change is
    reported once, in the night in which it is first seen. Progress goes to standard error.

    Exit status: 0 nothing is worse; 1 a regression; 2 bad input; 3 it could not be measured, for example because the
    commit cannot be built or trials failed.
    """
    from dnsrig.comparison.compare import metric_name
    from dnsrig.experiment.preparation import Request

    with failing_as(EXIT_UNDECIDED):
        _repository.choose(repositories)
        names = [Path(experiment).stem for experiment in experiments]
        if len(set(names)) != len(names):
            raise UsageError("an experiment is named twice", hint="name each experiment once")
        for name in metric or []:
            metric_name(name, [])
        version = _newest(branch)
        request = Request("", scale, settings or [], repeats, versions=[version])
        requests = [replace(request, experiment=experiment) for experiment in experiments]
        _build(version, requests)
        found = _measured(branch, requests, out, metric or [], may_differ or [], alpha, quiet)
    if found:
        _console.out().print(_text(version, found, out), soft_wrap=True)
    raise typer.Exit(EXIT_REGRESSION if any(one.is_regression for one in found) else 0)


def _newest(branch: str) -> str:
    """The newest commit of ``branch`` as a version, with the given build options."""
    from dnsrig.servers import sources
    from dnsrig.servers.builds import reference
    from dnsrig.servers.sources import git

    server, source = sources.parse(branch)
    if not git.takes(source) or (wanted := reference.parse(source)).is_range:
        raise UsageError(f"{branch} is not a branch", hint="write KIND@git:BRANCH, e.g. bind@git:main")
    return f"{server.kind}@{wanted.at(git.commit(server, wanted.ref)).source}"


def _build(version: str, requests: list[Request]) -> None:
    """Build ``version``, after the requests are checked, because a build takes minutes."""
    from dnsrig.experiment import preparation

    for request in requests:
        preparation.draft(request)
    preparation.installed(version, _console.err().print)


def _measured(
    branch: str,
    requests: list[Request],
    out: Path,
    metrics: list[str],
    may_differ: list[str],
    alpha: float,
    quiet: bool,
) -> list[News]:
    """Measure what is new, and return the changes that were not reported before.

    They are recorded as reported before they are printed. A lost text can be found in the folder, and a text that
    comes every night is not read.
    """
    from dnsrig.cli import _history
    from dnsrig.comparison.history import history, news
    from dnsrig.experiment.versions import runs_in
    from dnsrig.experiment.watched import Watched
    from dnsrig.report.history import write_history

    def so_far(folder: Path) -> History:
        runs, order = runs_in(folder / "runs"), _order.order("auto")
        return history(runs, metrics=metrics, order=order, may_differ=may_differ, alpha=alpha, newest=WINDOW)

    watched = Watched.read(out, branch)
    found: list[News] = []
    seen: list[Key] = []
    errors = 0
    for request in requests:
        folder = out / Path(request.experiment).stem
        errors += _history.measure_lacking(request, folder, may_differ, quiet=quiet)
        fresh = news(so_far(folder), watched.told)
        seen += [one.key for one in fresh]
        found += [
            one for one in fresh if not one.is_regression or _history.is_confirmed(one, request, folder, quiet=quiet)
        ]
        write_history(so_far(folder), folder)
    if errors:
        raise DnsrigError(
            f"{errors} trial(s) failed because of dnsrig or the machine", hint="the same command repeats them"
        )
    watched.tell(seen).write(out)
    return found


def _text(version: str, found: list[News], out: Path) -> str:
    from dnsrig.report.history.table import sentence

    worse = sum(one.is_regression for one in found)
    lines = [f"{version}: {worse} worse, {len(found) - worse} changed otherwise"]
    for one in found:
        name = one.key[0]
        lines.append(f"{one.change.kind}: {name}, {one.series.label}, {one.series.metric.name}: {sentence(one.change)}")
    pages = dict.fromkeys(out / one.key[0] / "history.html" for one in found)
    return "\n".join(visible(line) for line in [*lines, *(f"page: {page}" for page in pages)])
