"""`dnsrig compare`: two runs side by side, and an answer that a script can use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console
from dnsrig.cli._exits import EXIT_SKIP, EXIT_STOP, failing_as
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.read import Run
    from dnsrig.analysis.thresholds import Decision

EXIT_STATUS = {"pass": 0, "regression": 1, "undecided": 2, None: 0}
BISECT_STATUS = {**EXIT_STATUS, "undecided": EXIT_SKIP}
EXIT_NOT_COMPARED = 3


def add(app: typer.Typer) -> None:
    app.command("compare")(command)


def command(
    base: Annotated[Path, typer.Argument(help="directory of the run to compare with, e.g. of the last release")],
    new: Annotated[Path, typer.Argument(help="directory of the run in question")],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="METRIC > N % or METRIC < N %: what of NEW, in percent of BASE, is a regression; repeatable",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="one more metric to show (`dnsrig list metrics`; its unit may be left out); repeatable",
        ),
    ] = None,
    may_differ: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="what may differ between the runs beside the server under test, by its name as told or the beginning of it "
            "(`links`, `machine.kernel`): rules judge all the same; repeatable",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the whole comparison as JSON")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="print it as Markdown, to paste into an issue or a pull request")
    ] = False,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect",
            help="exit status for `git bisect run`: undecided is 125, which skips the commit; runs that cannot be compared are 128, "
            "which ends the search",
        ),
    ] = False,
) -> None:
    """Hold run NEW against run BASE: each variant that both have, by the main metric and those named.

    Variants are matched by their values on the matrix; where each run has a single server, these two are held against
    each other. Runs over several machines are compared within those that both have, and repeats on others are left out.
    Whatever else differs in what the trials were asked to do (path, hosts, settings, dataset, options), in the machine,
    its kernel or dnsrig's version is told on standard error, with --json and --markdown as well.

    A rule is a regression where the 95 % interval of the ratio of medians lies wholly beyond its limit and the rank
    test agrees, or where some repeats of NEW did not finish and all of BASE did. It passes where the interval lies
    wholly on the good side. Otherwise, and always below five repeats, it is undecided; and so is the whole where NEW
    lacks a variant of BASE. It is undecided, too, where the runs differ in more than the server under test: the cause
    may be there. Name with --may-differ what is meant to differ; a verdict is then about all that differs together.

    Exit status: 0 if every rule passes (or there is none), 1 for a regression, 2 for undecided. 3 if the runs could not
    be compared (a run that is missing or was written by a newer dnsrig, a rule that is none, an unknown metric), with a
    sentence on standard error and nothing on standard output. With --bisect: 0 good, 1 bad, 125 skip, 128 stop.

    Examples: dnsrig compare runs/tour/A runs/tour/B; dnsrig compare A B --fail-if 'transfer_time > 110 %' --fail-if
    'secondary_cpu > 105 %'; dnsrig compare A B --metric time_wait_peak --json
    """
    with failing_as(EXIT_STOP if bisect else EXIT_NOT_COMPARED):  # what an error has by itself would read as a verdict
        if bisect and not fail_if:
            raise UsageError("--bisect without a rule", hint="say what makes a commit bad: --fail-if 'METRIC > N %'")
        if as_json and as_markdown:
            raise UsageError("--json and --markdown at once", hint="choose one: there is one standard output")
        shape = "json" if as_json else "markdown" if as_markdown else "text"
        decision = _compare(base, new, fail_if or [], metric or [], may_differ or [], shape)
    raise typer.Exit((BISECT_STATUS if bisect else EXIT_STATUS)[decision])


def _compare(
    base: Path, new: Path, fail_if: list[str], metrics: list[str], may_differ: list[str], shape: str
) -> Decision | None:
    """Print the comparison; returns what the rules decide, None without any."""
    from dnsrig.analysis import thresholds
    from dnsrig.analysis.compare import compare_runs
    from dnsrig.analysis.read import Run
    from dnsrig.report import comparison, comparison_markdown

    runs = Run.open(base), Run.open(new)
    found = compare_runs(*runs, metrics, [thresholds.parse(text) for text in fail_if], may_differ)
    complaints = _console.err(soft_wrap=True)
    for warning in [*comparison.warnings(found), *(missing for run in runs for missing in _missing(run))]:
        complaints.print(visible(warning))
    if shape == "json":
        print(json.dumps(comparison.as_json(found), indent=2))
    elif shape == "markdown":
        print(comparison_markdown.as_markdown(found), end="")
    else:
        _console.out().print(comparison.as_text(found))
    return found.decision


def _missing(run: Run) -> Iterator[str]:
    """What of the trials of ``run`` takes no part in the comparison."""
    for _, wrong in run.unreadable:
        yield f"left out: {wrong}"
    for damage in run.failures.damaged:
        yield f"damaged, and without the figures that need it: {damage}"
    for failure in run.failures:
        yield f"failed, and without a figure: {failure.part} {failure.name}: {failure.error}"
