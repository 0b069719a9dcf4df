"""`dnsrig plan`: what would it take? Nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig import outputs
from dnsrig.cli import _console
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED, EXIT_USAGE, failing_as
from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.analysis.models.held_out import Row
    from dnsrig.analysis.models.scenario import Scenario
    from dnsrig.report.plan import Answer


def add(app: typer.Typer) -> None:
    app.command("plan")(command)


@failing_as(EXIT_USAGE)  # 1 would read as an answer
def command(
    zones: Annotated[int | None, typer.Option(help="how many zones")] = None,
    records: Annotated[float | None, typer.Option(help="records of each zone; by default 4, or as in RUN")] = None,
    nbytes: Annotated[
        float | None, typer.Option("--bytes", help="bytes of a record in a transfer; by default 49.4, as .ch has")
    ] = None,
    rtt: Annotated[str | None, typer.Option(metavar="TIME", help="round trip of the path, e.g. 250ms")] = None,
    jitter: Annotated[
        str | None, typer.Option(metavar="TIME", help="of the delay each way, uniform: ± so much")
    ] = None,
    reordering: Annotated[bool, typer.Option("--reordering", help="jitter lets packets overtake each other")] = False,
    loss: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="of packets in the direction of the data, e.g. 0.1%; a ping sees both"),
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="of the path, e.g. 20mbit")] = None,
    site: Annotated[str | None, typer.Option(metavar="NAME", help="a named site instead, e.g. seoul or s3-far")] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="one (connection a zone), reused, pipelined; replica or remote: of a database. By default the secondary's"
        ),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(help="tcp (default), tcp+tsig, xot or xot+tsig; of a database xot means TLS")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="transfers at once; when pipelined zones asked for at once. By default the secondary's, or 100"
        ),
    ] = None,
    connections: Annotated[int | None, typer.Option(help="when pipelined: so many of them")] = None,
    congestion: Annotated[
        str | None,
        typer.Option(
            help="congestion control of the sender: reno, cubic, illinois, hybla or bbr; by default this machine's, or with --from the run's"
        ),
    ] = None,
    secondary: Annotated[
        str | None, typer.Option(help="bind, knot, nsd or powerdns, with its default settings")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="a setting of the secondary; repeatable")
    ] = None,
    buffer: Annotated[
        str | None, typer.Option(metavar="SIZE", help="receive window of a connection; by default 3.1MB")
    ] = None,
    primary: Annotated[
        str | None,
        typer.Option(
            help="bind, knot, nsd or powerdns, whose work then counts; by default knot where there are --sites"
        ),
    ] = None,
    sites: Annotated[int, typer.Option(help="so many such sites at the same time, all from one primary")] = 1,
    uplink: Annotated[str | None, typer.Option(metavar="RATE", help="of the primary, shared by all sites")] = None,
    within: Annotated[
        str | None, typer.Option(metavar="TIME", help="how long it may take, e.g. 30min; decides the exit status")
    ] = None,
    from_run: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="RUN", help="take the server's own times from this run, and see how well they foretell it"
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=VALUE", help="with --from: only such variants of RUN; repeatable")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="draw time against the number of zones")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="the same as PNG")] = None,
) -> None:
    """Predict how long transfers to a far secondary take, which limit binds, and what would lift it. Nothing is run.

    Limits are laws, each with its source: volume / speed; zones × round trips × RTT / workers; what the congestion
    control makes of the loss; receive buffers; ephemeral ports in TIME_WAIT; what servers limit by default; their work;
    the primary's uplink and CPU, shared by all sites. The slowest binds; what one worker waits for one after the other
    is added up. Each has a factor by which it may be wrong, and the answer is an interval. docs/explanation/model.md
    explains them.

    With --from the server's own times come from a measured run: its smaller sizes are fitted and held against the
    largest, which the fit has not seen; what was predicted, what was measured and the coverage are shown. With --zones
    that fit then answers for any number of zones, along with the laws. A run over a far path gives its round trips a
    zone instead.

    Exit status: 0 an answer, and --within is kept; 1 --within is not kept; 3 undecided: its interval holds that time; 2
    bad input, or a run that cannot be read.

    Examples: dnsrig plan --zones 100000 --rtt 250ms --loss 0.1% --rate 20mbit --secondary knot; dnsrig plan --zones 1
    --records 8e6 --site s3-far --congestion bbr; dnsrig plan --zones 1000000 --site seoul --policy pipelined --sites
    1000 --uplink 10gbit --within 1h; dnsrig plan --from runs/many-zones/RUN --only server=knot@forky --zones 1000000
    """
    from dnsrig.cli import _scenario, _units

    measures = _units.all_of(
        rtt=(rtt, _units.duration_s),
        jitter=(jitter, _units.duration_s),
        loss=(loss, _units.share),
        rate=(rate, _units.rate_bytes_per_s),
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
        settings=_scenario.settings(set_ or []),
        primary=primary,
    )
    within_s = measures["within"]
    if zones is None and from_run is None:
        raise UsageError("how many zones?", hint="e.g. dnsrig plan --zones 100000 --rtt 250ms --rate 20mbit")
    if only and from_run is None:
        raise UsageError("--only chooses among the variants of a run", hint="say which with --from RUN")
    if set_ and from_run is None and secondary is None:
        raise UsageError(
            "--set without --secondary", hint="say whose setting it is: --secondary bind, knot, nsd or powerdns"
        )
    if secondary and from_run:
        raise UsageError(
            "--secondary beside --from: the run says which server it was", hint="choose among its variants by --only"
        )
    if zones is None and (within or svg or png):
        raise UsageError("how many zones?", hint="--within, --svg and --png are about a prediction: say --zones")
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
    from dnsrig.analysis.models import held_out
    from dnsrig.analysis.read import Run

    rows = held_out.rows(Run.open(run))
    if not rows:
        raise UsageError(
            f"{run} has no series of sizes that finished", hint="a run of an experiment such as many-zones"
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
    from dnsrig.analysis.models.combine import alternatives, predict
    from dnsrig.report.plan import Answer

    prediction = predict(scenario)
    if not any(limit.time_s > 0 for limit in prediction.limits):
        raise UsageError("nothing is known that could limit it", hint="say --rtt, --rate, --secondary or --site")
    title = f"{scenario.secondary}, policy {scenario.policy}, {scenario.carried_by}, {scenario.congestion}"
    return Answer(title, prediction, alternatives(scenario), notes)


def _print(answers: list[Answer], rows: list[Row], run: Path | None, as_json: bool, within_s: float | None) -> None:
    from dnsrig.analysis.models import held_out
    from dnsrig.report import plan

    if as_json:
        print(json.dumps(plan.as_json(answers, rows), indent=2))
        return
    console = _console.out()
    if rows:
        console.print(plan.held_out_text(str(run), rows, held_out.coverage(rows)))
    for number, answer in enumerate(answers):
        console.print(*([""] if number or rows else []), plan.as_text(answer), sep="\n")
    if answers:
        console.print(plan.SAID)
    if within_s is not None:
        console.print(plan.within_sentence(within_s, _status(answers, within_s)))


def _draw(scenarios: list[Scenario], file: Path) -> None:
    from dnsrig.report import plan_chart

    if len(scenarios) != 1:
        raise UsageError("a chart is of one prediction", hint="with --from, choose by --only and say --zones")
    try:
        plan_chart.write(scenarios[0], file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="a file in a folder that exists") from error


def _status(answers: list[Answer], within_s: float | None) -> int:
    """Of the slowest: all have to keep it."""
    if within_s is None or not answers:
        return 0
    if any(answer.prediction.low_s > within_s for answer in answers):
        return EXIT_REGRESSION
    kept = all(answer.prediction.high_s <= within_s and not answer.prediction.at_least for answer in answers)
    return 0 if kept else EXIT_UNDECIDED
