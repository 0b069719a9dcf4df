"""`dnsrig bench`: which of these servers is faster, and is it true?"""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dnsrig.cli import _console, _on, _options, _units
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED
from dnsrig.errors import UsageError
from dnsrig.stats.stopping import MOST_REPEATS

if TYPE_CHECKING:
    from dnsrig.experiment.bench import Question
    from dnsrig.runs.run import Run

USUAL_PRECISION = "5%"
USUAL_TIME = "50s"
"""With the installation, the start and the report, two servers then take less than a minute."""
OF_ANSWERS = {"servers", "compare_answers", "queries", "resolver", "as_json", "authorized"}
"""The parameters that have a meaning if the answers of two servers that run already are compared."""


def add(app: typer.Typer) -> None:
    app.command("bench")(command)


def command(
    context: typer.Context,
    servers: Annotated[
        list[str],
        typer.Argument(
            metavar="SERVER...",
            help="KIND@SOURCE, e.g. bind@forky, knot@git:v3.5.0, nsd@/opt/nsd, or the address and port of a server that "
            "runs already; the first is the one that others are compared with",
        ),
    ],
    rate: Annotated[
        str,
        typer.Option(
            metavar="QPS,...",
            help="queries a second, e.g. 20k or 1k,5k,20k; default: 10k, or 100 for somebody else's server",
        ),
    ] = "",
    highest: Annotated[
        bool, typer.Option("--max", help="search the highest rate that each server holds, instead of a fixed rate")
    ] = False,
    transfer: Annotated[
        bool, typer.Option("--transfer", help="measure how long each server, as a secondary, takes to get all zones")
    ] = False,
    compare_answers: Annotated[
        bool,
        typer.Option(
            "--compare-answers",
            help="ask all servers the same queries, and name the answers that differ from the first's",
        ),
    ] = False,
    zone: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="zone file of your own; repeatable; default: 1,000 tiny zones, 100 to transfer"
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="queries of your own; default: names of the zones")
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="capture of clients' queries, which are replayed")
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="what each answer must be, as for `dnsrig load --expect`, or noerror-nonempty for all; a wrong answer counts like "
            "none",
        ),
    ] = "",
    transport: Annotated[
        str,
        typer.Option(
            help="udp, tcp, dot, doh, doq, or several with commas; for transfers tcp, xot, xoq; default: udp, or tcp for transfers"
        ),
    ] = "",
    duration: Annotated[str, typer.Option(metavar="TIME", help="duration of a measurement at a fixed rate")] = "2s",
    rtt: Annotated[str, typer.Option(metavar="TIME", help="with --transfer: round trip of the path, e.g. 200ms")] = "",
    loss: Annotated[
        str, typer.Option(metavar="PERCENT", help="with --transfer: loss in each direction, e.g. 0.5%")
    ] = "",
    precision: Annotated[
        str, typer.Option(metavar="PERCENT", help="repeat until each interval is within PERCENT of its middle")
    ] = USUAL_PRECISION,
    repeats: Annotated[int, typer.Option(min=5, max=1000, help="least number of repeats")] = 5,
    most: _options.Most = MOST_REPEATS,
    within: _options.Within = USUAL_TIME,
    settings: _options.Settings = None,
    print_experiment: Annotated[
        bool, typer.Option("--print-experiment", help="print the experiment as TOML instead of running it")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="METRIC > N % or METRIC < N % of the first server: a regression; repeatable"),
    ] = None,
    exports: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="write RUN/export in a format of `dnsrig export`, or in several with commas: json,markdown,csv; repeatable. The "
            "HTML page is always written",
        ),
    ] = None,
    dry_run: _options.DryRun = False,
    resolver: Annotated[
        bool, typer.Option("--resolver", help="for servers that run already: they are resolvers, so ask for recursion")
    ] = False,
    authorized: _options.Authorized = None,
    runs: _options.Runs = Path("runs"),
    as_json: _options.Json = False,
    quiet: _options.Quiet = False,
) -> None:
    """Compare servers with one command, and no experiment file.

    Examples:

        dnsrig bench bind@bookworm bind@forky --rate 20k
        dnsrig bench knot@forky nsd@forky --max
        dnsrig bench bind@forky knot@forky --zone example.zone \\
            --queries queries.txt --transport udp,tcp
        dnsrig bench bind@forky knot@forky --transfer --rtt 200ms \\
            --loss 0.5% --transport tcp,xot
        dnsrig bench unbound@forky knot-resolver@forky \\
            --capture clients.pcap
        dnsrig bench 127.0.0.1:5300 --queries queries.txt \\
            --rate 1k,5k,20k --transport udp,tcp,dot
        dnsrig bench bind@forky knot@forky --compare-answers

    An address is a server that runs already. It needs no root, and nothing is known of its CPU time and losses.

    The servers take turns, at least 5 times each, until every interval is narrow (--precision). Only widths decide
    when to stop, so more repeats cannot find a difference by chance. The result is a run like that of any experiment:
    `dnsrig report`, `compare` and `browse` read it, and --print-experiment shows the experiment to grow out of this.

    Exit status: as for `dnsrig run`. With --compare-answers 1 if answers differ, and 3 if nothing differs but some
    queries had no answer, or a server did not start.
    """
    import tomli_w

    from dnsrig.comparison import thresholds
    from dnsrig.experiment import model
    from dnsrig.experiment.bench import experiment

    rules = [thresholds.parse(text) for text in fail_if or []]
    formats = _formats(exports or [])
    asked = _question(
        servers,
        rate,
        {"--max": highest, "--transfer": transfer, "--compare-answers": compare_answers},
        transport,
        duration,
        rtt,
        loss,
        zone or [],
        queries,
        capture,
    )
    if compare_answers and (addresses := _running(servers)):
        _compare_running(context, addresses, queries, resolver, authorized or [], as_json)
    asked = dataclasses.replace(asked, as_resolvers=resolver, expect=_expectation(expect))
    document = functools.reduce(model.with_setting, settings or [], experiment(asked))
    if print_experiment:
        typer.echo(tomli_w.dumps(document), nl=False)
        return
    # The answers of two servers are compared once: each difference was asked for twice.
    until = None if compare_answers else _options.until(precision, repeats, most, within)
    from dnsrig.cli.run import Ending, run_experiment
    from dnsrig.experiment.preparation import Request

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(tomli_w.dumps(document))
        with _on.executing("", 1) as executing:
            request = Request(
                str(path),
                repeats=1 if compare_answers else None,
                until=until,
                where=executing.where(),
                authorized=_options.addresses(authorized or []),
            )
            run_experiment(
                request,
                runs,
                _console.progress(quiet),
                executing,
                Ending(
                    rules,
                    as_json,
                    bars=not compare_answers,
                    judge=_status_of_answers if compare_answers else None,
                    exports=formats,
                ),
                dry_run=dry_run,
            )


def _formats(exports: list[str]) -> list[str]:
    """The formats to write beside the HTML page. Raises UsageError if one of them is unknown."""
    from dnsrig.report.exports import writer

    given = [each.strip() for export in exports for each in export.split(",")]
    chosen = [name for name in given if name not in ("", "html")]
    for name in chosen:
        writer(name)
    return chosen


def _running(servers: list[str]) -> list[str]:
    """The addresses of servers that run already; empty if dnsrig starts the servers. Raises UsageError on a mixture."""
    from dnsrig.experiment.bench import named
    from dnsrig.experiment.running_servers import is_running

    found = [named(server) for server in servers]
    if not any(map(is_running, found)):
        return []
    if len(set(found)) != 2 or not all(map(is_running, found)):
        raise UsageError(
            "--compare-answers compares two servers that run already, or servers that dnsrig starts",
            hint="name two different addresses, or servers such as bind@forky",
        )
    return [name.partition("@")[2].partition(",")[0] for name in found]


def _compare_running(
    context: typer.Context,
    addresses: list[str],
    queries: Path | None,
    recursive: bool,
    authorized: list[str],
    as_json: bool,
) -> NoReturn:
    """Become the engine's `compare-answers`, which needs no network of its own."""
    from dnsrig import paths

    for name, option in _options.given(context).items():
        if name not in OF_ANSWERS:
            raise UsageError(
                f"{option} has no meaning if the answers of two servers that run already are compared",
                hint="leave it out; --queries, --resolver, --json and --i-am-authorized have one",
            )
    if queries is None:
        raise UsageError("--queries is missing", hint="name a file with the queries that both servers get")
    words = [*addresses, f"--queries={queries}", *(["--recursion-desired"] if recursive else [])]
    words += [f"--i-am-authorized={address}" for address in _options.addresses(authorized)]
    words += ["--json"] if as_json else []
    os.execv(paths.engine(), ["dnsrig-engine", "compare-answers", *words])


def _status_of_answers(run: Run) -> int:
    """The exit status of a comparison of answers."""
    from dnsrig.traps import answers_differ

    found = [answers_differ.after(trial) for trial in run.trials]
    verdicts = {conclusion.verdict if conclusion is not None else "cannot-tell" for conclusion in found}
    if "found" in verdicts:
        return EXIT_REGRESSION
    whole = verdicts == {"clear"} and all(trial.record.outcome == "done" for trial in run.trials)
    return 0 if whole else EXIT_UNDECIDED


def _expectation(text: str) -> str:
    from dnsrig.query_files import NOERROR_NONEMPTY

    if text and text != NOERROR_NONEMPTY and not Path(text).is_file():
        raise UsageError(f"--expect: there is no file {text}", hint=f"name an existing file, or {NOERROR_NONEMPTY}")
    return text


def _question(
    servers: list[str],
    rate: str,
    others: dict[str, bool],
    transport: str,
    duration: str,
    rtt: str,
    loss: str,
    zones: list[Path],
    queries: Path | None,
    capture: Path | None,
) -> Question:
    """The question that the options ask. Raises UsageError on options that contradict each other or cannot be read."""
    from dnsrig.experiment.bench import Question, usual_rate_qps

    if (given := [name for name, value in {"--rate": rate, **others}.items() if value])[1:]:
        raise UsageError(f"{' and '.join(given)} are different questions", hint="ask one at a time")
    if missing := next((path for path in (*zones, queries, capture) if path is not None and not path.is_file()), None):
        raise UsageError(f"there is no file {missing}", hint="name an existing file")
    measures = {"--max": "max", "--transfer": "transfer", "--compare-answers": "answers"}
    measure = next((measures[name] for name, value in others.items() if value), "rate")
    rates = [_units.count(each, "--rate") for each in rate.split(",")] if rate else []
    if measure == "rate" and capture is None and not rates:
        rates = [usual_rate_qps(servers)]
    return Question(
        servers=servers,
        measure=measure,  # type: ignore[arg-type]
        rates_qps=rates,
        transports=[each.strip() for each in transport.split(",")] if transport else [],
        zones=zones,
        queries=queries,
        capture=capture,
        duration_s=_units.duration_s(duration, "--duration", 0.5, 3600),
        rtt_ms=1e3 * _units.duration_s(rtt, "--rtt", 0, 10) if rtt else 0.0,
        loss_percent=100 * _units.share(loss, "--loss") if loss else 0.0,
    )
