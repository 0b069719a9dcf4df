"""`dnsrig compare`: two runs side by side, and an answer that a script can use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig.cli import _console, _options
from dnsrig.cli._exits import EXIT_NO_VALID_TRIAL, EXIT_SKIP, EXIT_STOP, EXIT_USAGE, VERDICT, failing_as
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.comparison.compare import TwoRuns
    from dnsrig.runs.run import Run

BISECT_STATUS = {**VERDICT, "undecided": EXIT_SKIP}


def add(app: typer.Typer) -> None:
    app.command("compare")(command)


def command(
    base: Annotated[
        Path,
        typer.Argument(
            help="directory of the run to compare with, e.g. of the last release; without NEW: the run whose variants "
            "are compared with each other"
        ),
    ],
    new: Annotated[Path | None, typer.Argument(help="directory of the run in question")] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--base",
            metavar="AXIS=VALUE",
            help="without NEW: the variants with this value are the base of the variants that differ in nothing else; "
            "default: the experiment's baseline; repeatable",
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="METRIC > N % or METRIC < N %, of NEW in percent of BASE: a regression; repeatable",
        ),
    ] = None,
    metric: _options.Metrics = None,
    may_differ: _options.MayDiffer = None,
    as_json: _options.Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="print Markdown, to paste into an issue or a pull request")
    ] = False,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect",
            help="exit with the status that `git bisect run` expects: 125 (skip the commit) if undecided, 128 (stop) if "
            "the runs cannot be compared",
        ),
    ] = False,
) -> None:
    """Compare two runs, or the variants of one run.

    Examples:

        dnsrig compare runs/tour/A runs/tour/B
        dnsrig compare A B --fail-if 'transfer_time > 110 %' \\
            --fail-if 'secondary_cpu > 105 %'
        dnsrig compare A B --metric time_wait_peak --json
        dnsrig compare A --base server=bind@bookworm --fail-if 'p99 > 110 %'

    Compares each variant that both runs have, by the main metric and the metrics named with --metric. Without NEW it
    compares the variants of one run with each other. That is the fairer comparison, because they took turns.

    Variants are matched by their values on the matrix. If each run has a single server, these two are compared. Runs
    over several machines are compared on the machines that both have; repeats on other machines are left out.
    Everything else that differs is reported on standard error, also with --json and --markdown: what the trials were
    asked to do (path, hosts, settings, dataset, options), the machine, its kernel, and dnsrig's version.

    A rule reports a regression if the 95 % interval of the ratio of medians lies wholly beyond its limit and the rank
    test agrees, or if some repeats of NEW did not finish and all of BASE did. It passes if the interval lies wholly on
    the good side. Otherwise, and always below five repeats, it is undecided. The whole comparison is undecided if NEW
    lacks a variant of BASE, or if the runs differ in more than the server under test, because the cause may be there.
    Name intended differences with --may-differ: the verdict is then about all differences together. Within one run the
    ratio is computed within rounds, if there are enough of them.

    Exit status: 0 every rule passes, or no rule is given; 1 a regression; 3 undecided; 2 bad input: runs that cannot be
    compared (one is missing, or a newer dnsrig wrote it), an invalid rule, an unknown metric; then nothing is on
    standard output; 6 without a rule: no trial of some variant is valid. With --bisect: 0 good, 1 bad, 125 skip, 128
    stop.
    """
    status = EXIT_STOP if bisect else EXIT_USAGE
    with failing_as(status, status):  # an error must not end with a status that means a verdict
        if bisect and not fail_if:
            raise UsageError("--bisect without a rule", hint="state what makes a commit bad: --fail-if 'METRIC > N %'")
        if as_json and as_markdown:
            raise UsageError("--json and --markdown exclude each other", hint="choose one of them")
        shape = "json" if as_json else "markdown" if as_markdown else "text"
        found = _compared(base, new, _pairs(within or []), fail_if or [], metric or [], may_differ or [])
        _print(found, shape)
    if found.decision is None and found.without_valid_trial:
        raise typer.Exit(EXIT_NO_VALID_TRIAL)
    raise typer.Exit((BISECT_STATUS if bisect else VERDICT)[found.decision])


def _pairs(texts: list[str]) -> dict[str, str]:
    """Axis -> value, from ``AXIS=VALUE`` each."""
    found = dict(text.split("=", 1) for text in texts if "=" in text)
    if len(found) != len(texts):
        raise UsageError("--base takes AXIS=VALUE, and each axis once", hint="e.g. --base server=bind@bookworm")
    return found


def _compared(
    base: Path, new: Path | None, within: dict[str, str], fail_if: list[str], metrics: list[str], may_differ: list[str]
) -> TwoRuns:
    """The comparison; trials that are left out of it are reported on standard error."""
    from dnsrig.comparison import thresholds
    from dnsrig.comparison.compare import compare_runs, compare_within
    from dnsrig.runs.run import Run

    rules = [thresholds.parse(text) for text in fail_if]
    if new is not None and within:
        raise UsageError("--base with two runs: the run BASE is the base", hint="leave --base or NEW out")
    if new is None and may_differ:
        raise UsageError("--may-differ needs two runs", hint="leave it out: within one run only the matrix differs")
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
        _console.print_document(comparison.as_json(found))
    elif shape == "markdown":
        print(comparison_markdown.as_markdown(found), end="")
    else:
        _console.out().print(comparison.as_text(found))


def _missing(run: Run) -> Iterator[str]:
    """Sentences about the trials of ``run`` that are left out of the comparison."""
    for _, wrong in run.unreadable:
        yield f"left out: {wrong}"
    for damage in run.failures.damaged:
        yield f"damaged, so figures that need it are missing: {damage}"
    for failure in run.failures:
        yield f"failed, so its figure is missing: {failure.part} {failure.name}: {failure.error}"
