"""`dnsrig plan`: how long would it take? Nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig import outputs
from dnsrig.cli import _console, _options
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED, EXIT_USAGE, failing_as
from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.prediction.held_out import Row
    from dnsrig.prediction.scenario import Scenario
    from dnsrig.report.plan import Answer


def add(app: typer.Typer) -> None:
    app.command("plan")(command)


@failing_as(EXIT_USAGE)  # 1 is an answer, so no error may end with it
def command(
    zones: Annotated[int | None, typer.Option(help="number of zones")] = None,
    records: Annotated[float | None, typer.Option(help="records of each zone; default: 4, or as in RUN")] = None,
    nbytes: Annotated[
        float | None, typer.Option("--bytes", help="bytes of a record in a transfer; default: 49.4, like .ch")
    ] = None,
    rtt: Annotated[str | None, typer.Option(metavar="TIME", help="round-trip time of the path, e.g. 250ms")] = None,
    jitter: Annotated[
        str | None, typer.Option(metavar="TIME", help="largest deviation of the delay each way, uniform, e.g. 50ms")
    ] = None,
    reordering: Annotated[bool, typer.Option("--reordering", help="jitter lets packets overtake each other")] = False,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="share of packets lost in the direction of the data, e.g. 0.1%; a ping shows the loss of both directions",
        ),
    ] = None,
    bandwidth: Annotated[str | None, typer.Option(metavar="RATE", help="rate of the path, e.g. 20mbit")] = None,
    site: Annotated[
        str | None, typer.Option(metavar="NAME", help="named site in place of a path, e.g. seoul or s3-far")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="one (connection for each zone), reused or pipelined; for a database replica or remote; default: as the "
            "secondary does it"
        ),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(help="tcp (default), tcp+tsig, xot or xot+tsig; for a database xot means TLS")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="transfers at the same time; with pipelining, zones asked for at the same time; default: as the "
            "secondary does it, or 100"
        ),
    ] = None,
    connections: Annotated[int | None, typer.Option(help="number of connections, with pipelining")] = None,
    congestion: Annotated[
        str | None,
        typer.Option(
            help="congestion control of the sender: reno, cubic, illinois, hybla or bbr; default: as on this machine, or "
            "as in the run of --from-run"
        ),
    ] = None,
    secondary: Annotated[
        str | None,
        typer.Option(help="kind of server at the far end, with its default settings: bind, knot, nsd, powerdns"),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="setting of the secondary; repeatable")
    ] = None,
    buffer: Annotated[
        str | None, typer.Option(metavar="SIZE", help="receive window of a connection; default: 3.1MB")
    ] = None,
    primary: Annotated[
        str | None,
        typer.Option(
            help="kind of server that sends, to count its work: bind, knot, nsd, powerdns; default with --sites: knot"
        ),
    ] = None,
    sites: Annotated[int, typer.Option(help="number of equal sites that one primary serves at the same time")] = 1,
    uplink: Annotated[
        str | None, typer.Option(metavar="RATE", help="rate of the primary's uplink, shared by all sites, e.g. 10gbit")
    ] = None,
    within: Annotated[
        str | None, typer.Option(metavar="TIME", help="time allowed, e.g. 30m; it decides the exit status")
    ] = None,
    from_run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="take the server's own times from this run, and test the prediction on it"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=VALUE", help="with --from-run: use only these variants of RUN; repeatable"),
    ] = None,
    as_json: _options.Json = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="SVG file for a chart of the time by the number of zones")
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="PNG file for the same chart")] = None,
) -> None:
    """Predict how long transfers to a far secondary take.

    Examples:

        dnsrig plan --zones 100000 --rtt 250ms --loss 0.1% --bandwidth 20mbit \\
            --secondary knot
        dnsrig plan --zones 1 --records 8e6 --site s3-far --congestion bbr
        dnsrig plan --zones 1000000 --site seoul --policy pipelined --sites 1000 \\
            --uplink 10gbit --within 1h
        dnsrig plan --from-run runs/many-zones/RUN --only server=knot@forky \\
            --zones 1000000

    Prints the time, the limit that binds and what lifts it, and then the other limits. Nothing is run.

    Each limit is a law with a source: volume / speed; zones × round trips × RTT / workers; congestion control under
    loss; receive buffers; ephemeral ports in TIME_WAIT; default limits of servers; the work of servers; the primary's
    uplink and CPU, shared by all sites. The slowest limit binds. What one worker waits for in turn is added up. Each
    law has a factor by which it may be wrong, so the answer is an interval (docs/explanation/model.md).

    With --from-run the server's own times come from a measured run. A line is fitted to its smaller sizes and compared
    with its largest size, which the fit has not seen. The prediction, the measurement and the coverage are printed.
    With --zones the fit then answers for any number of zones, together with the laws. A run over a far path provides
    its round trips for each zone instead.

    Exit status: 0 an answer, and --within is kept; 1 --within is not kept; 3 undecided, because the interval contains
    the time allowed; 2 bad input, or a run that cannot be read.
    """
    from dnsrig.cli import _scenario, _units

    measures = _units.all_of(
        rtt=(rtt, _units.duration_s),
        jitter=(jitter, _units.duration_s),
        loss=(loss, _units.share),
        bandwidth=(bandwidth, _units.rate_bytes_per_s),
        uplink=(uplink, _units.rate_bytes_per_s),
        buffer=(buffer, _units.nbytes),
        within=(within, _units.duration_s),
    )
    asked = _scenario.Asked(
        path=_scenario.path(site, measures, ordered=not reordering),
        sites=sites,
        uplink_bytes_per_s=measures["uplink"],
        congestion=congestion,
        bytes_per_record=nbytes,
        window_bytes=measures["buffer"],
        policy=policy,
        transport=transport,
        workers=workers,
        connections=connections,
        settings=_scenario.settings(setting or []),
        primary=primary,
    )
    within_s = measures["within"]
    if zones is None and from_run is None:
        raise UsageError(
            "the number of zones is missing", hint="e.g. dnsrig plan --zones 100000 --rtt 250ms --bandwidth 20mbit"
        )
    if only and from_run is None:
        raise UsageError("--only chooses among the variants of a run", hint="name the run with --from-run RUN")
    if setting and from_run is None and secondary is None:
        raise UsageError(
            "--setting without --secondary", hint="name the server: --secondary bind, knot, nsd or powerdns"
        )
    if secondary and from_run:
        raise UsageError(
            "--secondary with --from-run: the run already names its server",
            hint="choose among its variants with --only",
        )
    if zones is None and (within or svg or png):
        raise UsageError(
            "the number of zones is missing", hint="--within, --svg and --png need a prediction: give --zones"
        )
    for file in (svg, png):
        if file is not None:
            outputs.check(file, from_run.rglob("*") if from_run else ())
    rows = _rows(from_run, only or []) if from_run else []
    if zones is None:
        made = []
    elif from_run:
        made = [_scenario.of_row(asked, row, zones, records) for row in rows]
    else:
        scenario, notes = _scenario.build(asked, secondary, zones, records)
        notes += _scenario.of_work(scenario, secondary)
        if secondary:
            notes += _scenario.without_effect(asked, secondary, zones, records)
        made = [(scenario, notes)]
    answers = [_answer(scenario, notes) for scenario, notes in made]
    _print(answers, rows, from_run, as_json, within_s)
    for file in (svg, png):
        if file is not None:
            _draw([scenario for scenario, _ in made], file)
    raise typer.Exit(_status(answers, within_s))


def _rows(run: Path, only: list[str]) -> list[Row]:
    from dnsrig.prediction import held_out
    from dnsrig.runs.run import Run

    rows = held_out.rows(Run.open(run))
    if not rows:
        raise UsageError(
            f"{run} has no series of sizes that finished", hint="use a run of an experiment such as many-zones"
        )
    chosen = [row for row in rows if all(_matches(row, text) for text in only)]
    if not chosen:
        labels = "; ".join(row.label for row in rows)
        raise UsageError(f"no variant of {run} is {' '.join(only)}", hint=f"it has: {labels}")
    return chosen


def _matches(row: Row, text: str) -> bool:
    axis, _, value = text.partition("=")
    return str(row.parameters.get(axis)) == value


def _answer(scenario: Scenario, notes: list[str]) -> Answer:
    from dnsrig.prediction.combine import alternatives, predict
    from dnsrig.prediction.round_trips import POLICIES
    from dnsrig.report.plan import Answer

    prediction = predict(scenario)
    if not any(limit.time_s > 0 for limit in prediction.limits):
        raise UsageError("there is no limit to compute", hint="give --rtt, --bandwidth, --secondary or --site")
    title = f"{scenario.secondary}, {POLICIES[scenario.policy]}, {scenario.carried_by}, {scenario.congestion}"
    return Answer(title, prediction, alternatives(scenario), notes)


def _print(answers: list[Answer], rows: list[Row], run: Path | None, as_json: bool, within_s: float | None) -> None:
    from dnsrig.prediction import held_out
    from dnsrig.report import plan

    if as_json:
        _console.print_document(plan.as_json(answers, rows))
        return
    console = _console.out()
    for answer in answers:
        console.print(plan.answer_text(answer, named=len(answers) > 1))
    if within_s is not None:
        console.print(plan.within_sentence(within_s, _status(answers, within_s)))
    for answer in answers:
        console.print("", plan.explanation(answer), sep="\n")
    if answers:
        console.print("", plan.SAID, sep="\n")
    if rows:
        console.print(*([""] if answers else []), plan.held_out_text(str(run), rows, held_out.coverage(rows)), sep="\n")


def _draw(scenarios: list[Scenario], file: Path) -> None:
    from dnsrig.report import plan_chart

    if len(scenarios) != 1:
        raise UsageError(
            "a chart shows one prediction", hint="with --from-run, choose one variant with --only, and give --zones"
        )
    try:
        plan_chart.write(scenarios[0], file)
    except OSError as error:
        raise UsageError(
            f"cannot write {file}: {error.strerror}", hint="name a file in a folder that exists"
        ) from error


def _status(answers: list[Answer], within_s: float | None) -> int:
    """The exit status: every answer must keep the time allowed."""
    if within_s is None or not answers:
        return 0
    if any(answer.prediction.low_s > within_s for answer in answers):
        return EXIT_REGRESSION
    kept = all(answer.prediction.high_s <= within_s and not answer.prediction.at_least for answer in answers)
    return 0 if kept else EXIT_UNDECIDED
