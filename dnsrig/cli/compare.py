"""`dnsrig compare`: two runs side by side, and an answer that a script can use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console
from dnsrig.cli._exits import EXIT_NO_VALID_TRIAL, EXIT_SKIP, EXIT_STOP, EXIT_USAGE, VERDICT, failing_as
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.compare import TwoRuns
    from dnsrig.analysis.read import Run

BISECT_STATUS = {**VERDICT, "undecided": EXIT_SKIP}


def add(app: typer.Typer) -> None:
    app.command("compare")(command)


def command(
    base: Annotated[
        Path,
        typer.Argument(
            help="directory of the run to compare with, e.g. of the last release; without NEW: of the run whose variants "
            "are compared with each other"
        ),
    ],
    new: Annotated[Path | None, typer.Argument(help="directory of the run in question")] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--base",
            metavar="AXIS=VALUE",
            help="without NEW: variants with this value are the base of those that differ in nothing else; by default the "
            "experiment's baseline; repeatable",
        ),
    ] = None,
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
    """Compare run NEW with run BASE: each variant that both have, by the main metric and those named. Without NEW,
    compare the variants of one run with each other: they were interleaved, which is the fairer comparison.

    Variants are matched by their values on the matrix; where each run has a single server, these two are compared. Runs
    over several machines are compared within those that both have, and repeats on others are left out. Whatever else
    differs in what the trials were asked to do (path, hosts, settings, dataset, options), in the machine, its kernel or
    dnsrig's version is reported on standard error, with --json and --markdown as well.

    A rule is a regression where the 95 % interval of the ratio of medians lies wholly beyond its limit and the rank
    test agrees, or where some repeats of NEW did not finish and all of BASE did. It passes where the interval lies
    wholly on the good side. Otherwise, and always below five repeats, it is undecided; and so is the whole where NEW
    lacks a variant of BASE. Within one run, the ratio is that within rounds where it has enough of them. It is
    undecided, too, where the runs differ in more than the server under test: the cause may be there. Name with
    --may-differ what is meant to differ; a verdict is then about all that differs together.

    Exit status: 0 if every rule passes or no rule is given, 1 for a regression, 3 for undecided. 2 for bad input: runs
    that cannot be compared (one is missing or was written by a newer dnsrig), an invalid rule, an unknown metric;
    with a sentence on standard error and nothing on standard output. 6 without a rule, if no trial of some variant is
    valid. With --bisect: 0 good, 1 bad, 125 skip, 128 stop.

    Examples: dnsrig compare runs/tour/A runs/tour/B; dnsrig compare A B --fail-if 'transfer_time > 110 %' --fail-if
    'secondary_cpu > 105 %'; dnsrig compare A B --metric time_wait_peak --json; dnsrig compare A --base
    server=bind@bookworm --fail-if 'p99 > 110 %'
    """
    status = EXIT_STOP if bisect else EXIT_USAGE
    with failing_as(status, status):  # what an error has by itself would read as a verdict
        if bisect and not fail_if:
            raise UsageError("--bisect without a rule", hint="say what makes a commit bad: --fail-if 'METRIC > N %'")
        if as_json and as_markdown:
            raise UsageError("--json and --markdown at once", hint="choose one: there is one standard output")
        shape = "json" if as_json else "markdown" if as_markdown else "text"
        found = _compared(base, new, _pairs(within or []), fail_if or [], metric or [], may_differ or [])
        _print(found, shape)
    if found.decision is None and found.without_valid_trial:
        raise typer.Exit(EXIT_NO_VALID_TRIAL)
    raise typer.Exit((BISECT_STATUS if bisect else VERDICT)[found.decision])


def _pairs(texts: list[str]) -> dict[str, str]:
    """``AXIS=VALUE`` of each."""
    found = dict(text.split("=", 1) for text in texts if "=" in text)
    if len(found) != len(texts):
        raise UsageError("--base takes AXIS=VALUE, each axis once", hint="e.g. --base server=bind@bookworm")
    return found


def _compared(
    base: Path, new: Path | None, within: dict[str, str], fail_if: list[str], metrics: list[str], may_differ: list[str]
) -> TwoRuns:
    """The comparison; what takes no part in it is reported on standard error."""
    from dnsrig.analysis import thresholds
    from dnsrig.analysis.compare import compare_runs, compare_within
    from dnsrig.analysis.read import Run

    rules = [thresholds.parse(text) for text in fail_if]
    if new is not None and within:
        raise UsageError("--base beside two runs: BASE is the base", hint="leave --base or NEW out")
    if new is None and may_differ:
        raise UsageError("--may-differ is about two runs", hint="leave it out: within one run only the matrix differs")
    runs = [Run.open(path) for path in (base, new) if path is not None]
    if new is None:
        found = compare_within(runs[0], within, metrics, rules)
    else:
        found = compare_runs(runs[0], runs[1], metrics, rules, may_differ)
    complaints = _console.err(soft_wrap=True)
    for missing in (missing for run in runs for missing in _missing(run)):
        complaints.print(visible(missing))
    return found


def _print(found: TwoRuns, shape: str) -> None:
    from dnsrig.report import comparison, comparison_markdown

    complaints = _console.err(soft_wrap=True)
    for warning in comparison.warnings(found):
        complaints.print(visible(warning))
    if shape == "json":
        print(json.dumps(comparison.as_json(found), indent=2))
    elif shape == "markdown":
        print(comparison_markdown.as_markdown(found), end="")
    else:
        _console.out().print(comparison.as_text(found))


def _missing(run: Run) -> Iterator[str]:
    """What of the trials of ``run`` takes no part in the comparison."""
    for _, wrong in run.unreadable:
        yield f"left out: {wrong}"
    for damage in run.failures.damaged:
        yield f"damaged, and without the figures that need it: {damage}"
    for failure in run.failures:
        yield f"failed, and without a figure: {failure.part} {failure.name}: {failure.error}"
