"""`dnsrig compare`: two runs side by side, and an answer that a script can use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dnsrig.cli import _console
from dnsrig.errors import DnsrigError

EXIT_STATUS = {"pass": 0, "regression": 1, "undecided": 2, None: 0}
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
) -> None:
    """Hold run NEW against run BASE: each variant that both have, by the main metric and those named.

    Variants are matched by their values on the matrix; where each run has a single server, these two are held against
    each other. Whatever else differs in what the trials were asked to do (path, hosts, settings, dataset, options), in the machine, its
    kernel or dnsrig's version is told on standard error, with --json as well.

    A rule is a regression where the 95 % interval of the ratio of medians lies wholly beyond its limit and the rank test agrees,
    or where some repeats of NEW did not finish and all of BASE did. It passes where the interval lies wholly on the good
    side. Otherwise, and always below five repeats, it is undecided; and so is the whole where NEW lacks a variant of BASE. It is
    undecided, too, where the runs differ in more than the server under test: the cause may be there. Name with --may-differ what is
    meant to differ; a verdict is then about all that differs together.

    Exit status: 0 if every rule passes (or there is none), 1 for a regression, 2 for undecided. 3 if the runs could not be
    compared (a run that is missing or was written by a newer dnsrig, a rule that is none, an unknown metric), with a sentence
    on standard error and nothing on standard output.

    Examples: dnsrig compare runs/tour/A runs/tour/B; dnsrig compare A B --fail-if 'transfer_time > 110 %' --fail-if
    'secondary_cpu > 105 %'; dnsrig compare A B --metric time_wait_peak --json
    """
    from dnsrig.analysis import rules
    from dnsrig.analysis.read import Run
    from dnsrig.analysis.two_runs import compare_runs
    from dnsrig.report import comparison, figures

    try:
        wanted = [rules.parse(text) for text in fail_if or []]
        found = compare_runs(Run.open(base), Run.open(new), metric or [], wanted, may_differ or [])
    except DnsrigError as error:
        error.exit_code = EXIT_NOT_COMPARED  # what it has by itself would read as a verdict
        raise
    complaints = _console.err(soft_wrap=True)
    for warning in comparison.warnings(found):
        complaints.print(figures.visible(warning))
    if as_json:
        print(json.dumps(comparison.as_json(found), indent=2))
    else:
        _console.out().print(comparison.as_text(found))
    raise typer.Exit(EXIT_STATUS[found.decision])
