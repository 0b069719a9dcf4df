"""`dnsrig bench`: the experiment that a command line becomes, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import captures
import pytest
import synthetic
import tomli_w
from command_line import output
from rich.console import Console

from dnsrig.cli import bench, report
from dnsrig.cli._exits import EXIT_REGRESSION, EXIT_UNDECIDED
from dnsrig.errors import UsageError
from dnsrig.experiment import preparation
from dnsrig.experiment.bench import Question, experiment, named, usual_rate_qps
from dnsrig.report.bars import terminal_bars
from dnsrig.runs.run import Run


def drafted(asked: Question, tmp_path: Path) -> preparation.Draft:
    path = tmp_path / "bench.toml"
    path.write_text(tomli_w.dumps(experiment(asked)))
    return preparation.draft(preparation.Request(str(path)))


@pytest.mark.parametrize(
    ("asked", "procedure", "axes", "options"),
    [
        (
            Question(["bind@forky", "knot@forky"], rates_qps=[1000.0]),
            "latency",
            {"server": ["bind@forky", "knot@forky"]},
            {"serve_as": "primary", "rate_qps": 1000.0},
        ),
        (
            Question(["nsd@forky"], rates_qps=[1e3, 5e3], transports=["udp", "dot"]),
            "latency",
            {"server": ["nsd@forky"], "rate_qps": [1e3, 5e3], "transport": ["udp", "dot"]},
            {"duration_s": 2.0},
        ),
        (
            Question(["unbound@forky", "bind@forky"], measure="max"),
            "capacity",
            {"server": ["unbound@forky", "bind@forky"]},
            {"serve_as": "resolver"},
        ),
        (
            Question(
                ["bind@forky", "knot@forky"],
                measure="transfer",
                transports=["tcp", "xot"],
                rtt_ms=200.0,
                loss_percent=0.5,
            ),
            "transfer",
            {"server": ["bind@forky", "knot@forky"], "transport": ["tcp", "xot"]},
            {},
        ),
        (
            Question(["knot@forky"], measure="transfer", transports=["tcp", "xoq"]),
            "transfer",
            {"server": ["knot@forky"], "transport": ["tcp", "xoq"]},
            {},
        ),
    ],
)
def test_a_command_line_becomes_an_experiment(
    asked: Question, procedure: str, axes: dict[str, list[Any]], options: dict[str, Any], tmp_path: Path
) -> None:
    found = drafted(asked, tmp_path)
    assert found.document.procedure == procedure
    assert {axis: [p.parameters[axis] for p in found.points] for axis in axes}.keys() == found.points[
        0
    ].parameters.keys()
    assert {p.parameters["server"] for p in found.points} == set(asked.servers)
    assert options.items() <= found.points[0].document.options.items()
    assert len(found.points) == len(asked.servers) * max(1, len(asked.rates_qps)) * max(1, len(asked.transports))


def test_answers_are_compared_with_what_the_user_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (expected := tmp_path / "expected.txt").write_text("www.example A 192.0.2.1\n")
    for given, found in [("noerror-nonempty", "noerror-nonempty"), (str(expected), str(expected))]:
        draft = drafted(Question(["knot@forky"], rates_qps=[1000.0], expect=given), tmp_path)
        assert draft.document.queries is not None and draft.document.queries.expect == found
    with pytest.raises(UsageError, match="--expect is about the answers to queries"):
        experiment(Question(["knot@forky"], measure="transfer", expect="noerror-nonempty"))
    code, _, errors = output(monkeypatch, capsys, "bench", "knot@forky", "--expect", tmp_path / "missing")
    assert code == 2 and "there is no file" in errors


def test_the_answers_of_servers_are_compared_with_those_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = drafted(Question(["bind@forky", "knot@forky", "nsd@forky"], measure="answers"), tmp_path)
    assert (found.document.procedure, found.document.hosts["reference"].server) == ("answers", "bind@forky")
    assert [point.parameters for point in found.points] == [{"server": "knot@forky"}, {"server": "nsd@forky"}]
    for alone in (["bind@forky"], ["bind@forky", "knot@forky", "--transport", "tcp"]):
        code, _, errors = output(monkeypatch, capsys, "bench", *alone, "--compare-answers")
        assert code == 2 and "needs two servers or more" in errors
    code, _, errors = output(monkeypatch, capsys, "bench", "bind@forky", "knot@forky", "--compare-answers", "--max")
    assert code == 2 and "different questions" in errors


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([("done", {})], 0),
        ([("done", {}), ("done", {"different": 2})], EXIT_REGRESSION),
        ([("done", {"unanswered": 3})], EXIT_UNDECIDED),
        ([("done", {"rcodes": {"REFUSED": 9}})], EXIT_UNDECIDED),
        ([("done", {}), ("server-failed", None)], EXIT_UNDECIDED),
        ([("timeout", {})], EXIT_UNDECIDED),
    ],
)
def test_a_comparison_of_answers_that_is_not_whole_is_undecided(
    found: list[tuple[str, dict[str, Any] | None]], status: int
) -> None:
    same = {"queries": 9, "unanswered": 0, "different": 0, "differences": {"rrset": 2}, "examples": []}
    trials = [
        SimpleNamespace(
            record=SimpleNamespace(
                outcome=outcome, instruments={} if summary is None else {"compare-answers": same | summary}
            )
        )
        for outcome, summary in found
    ]
    assert bench._status_of_answers(SimpleNamespace(trials=trials)) == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["127.0.0.1:5300", "127.0.0.1:5301"], "--queries is missing"),
        (["127.0.0.1:5300", "127.0.0.1:5301", "--queries", "QUERIES", "--dry-run"], "--dry-run has no meaning"),
        (["127.0.0.1:5300", "127.0.0.1:5301", "--queries", "QUERIES", "--set", "options={}"], "--set has no meaning"),
        (["127.0.0.1:5300", "127.0.0.1:5301", "--queries", "QUERIES", "--repeats", "5"], "--repeats has no meaning"),
        (["127.0.0.1:5300", "127.0.0.1:5300", "--queries", "QUERIES"], "two servers that run already"),
        (["127.0.0.1:5300", "127.0.0.1:5301", "127.0.0.1:5302", "--queries", "QUERIES"], "two servers that run"),
        (["127.0.0.1:5300", "bind@forky"], "two servers that run already"),
        (["127.0.0.1:5300", "127.0.0.1:5301", "--queries", "QUERIES", "--max"], "different questions"),
    ],
)
def test_nothing_is_sent_to_servers_that_run_if_an_option_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    (queries := tmp_path / "queries.txt").write_text("www.example A\n")
    monkeypatch.setattr("os.execv", lambda *arguments: pytest.fail("the engine was started"))
    given = [str(queries) if word == "QUERIES" else word for word in words]
    code, _, errors = output(monkeypatch, capsys, "bench", *given, "--compare-answers")
    assert code == 2 and message in " ".join(errors.split())


@pytest.mark.parametrize(
    ("servers", "given", "words"),
    [
        (["127.0.0.1:5300", "[::1]:5301"], ["--json"], ["--json"]),
        (["192.0.2.53", "192.0.2.54"], ["--resolver"], ["--recursion-desired"]),
        (
            ["192.0.2.53", "192.0.2.54"],
            ["--i-am-authorized", "192.0.2.53", "--i-am-authorized", "192.0.2.54"],
            ["--i-am-authorized=192.0.2.53", "--i-am-authorized=192.0.2.54"],
        ),
    ],
)
def test_two_servers_that_run_are_compared_by_the_engine_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    servers: list[str],
    given: list[str],
    words: list[str],
) -> None:
    (queries := tmp_path / "queries.txt").write_text("www.example A\n")
    started: list[list[str]] = []

    def become(program: Path, words: list[str]) -> None:
        started.append(words)
        raise SystemExit(0)

    monkeypatch.setattr("os.execv", become)
    output(monkeypatch, capsys, "bench", *servers, "--compare-answers", "--queries", queries, *given)
    assert started == [["dnsrig-engine", "compare-answers", *servers, f"--queries={queries}", *words]]


def test_resolvers_get_the_queries_of_a_capture_in_a_world_that_has_their_names(tmp_path: Path) -> None:
    capture = tmp_path / "clients.pcap"
    capture.touch()
    found = drafted(Question(["unbound@forky", "knot-resolver@forky"], capture=capture), tmp_path)
    assert found.document.procedure == "replay" and found.document.stream["file"] == str(capture)
    assert found.document.dataset["kind"] == "world" and found.document.dataset["from_stream"] is True
    assert {spec.hosts["internet"].role for spec in found.specs} == {"world"}


def test_the_path_of_a_transfer_has_half_of_the_round_trip_in_each_direction(tmp_path: Path) -> None:
    asked = Question(["bind@forky"], measure="transfer", rtt_ms=200.0, loss_percent=0.5)
    [far] = [link for link in drafted(asked, tmp_path).specs[0].links if link.forward is not None]
    assert far.ends == ("primary", "secondary") and far.forward is not None and far.reverse is not None
    assert far.forward.delay_ms == far.reverse.delay_ms == 100
    assert far.forward.loss_percent == far.reverse.loss_percent == 0.5


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("192.0.2.53", "running@192.0.2.53"),
        ("127.0.0.1:5300", "running@127.0.0.1:5300"),
        ("[2001:db8::53]:5300", "running@[2001:db8::53]:5300"),
        ("2001:db8::53", "running@2001:db8::53"),
        ("2001:db8::53,dot=8853", "running@2001:db8::53,dot=8853"),
        ("bind@forky", "bind@forky"),
        ("bind@git:v9.20.0", "bind@git:v9.20.0"),
    ],
)
def test_an_address_is_a_server_that_runs_already(server: str, expected: str) -> None:
    assert named(server) == expected


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        (["bind@forky"], 10_000),
        (["127.0.0.1:5300"], 10_000),
        (["127.0.0.1", "192.0.2.53"], 100),
        (["[2001:db8::53]:53"], 100),
    ],
)
def test_somebody_elses_server_gets_few_queries_unless_the_user_names_a_rate(servers: list[str], expected: int) -> None:
    assert usual_rate_qps(servers) == expected


def test_a_running_resolver_gets_a_capture_without_a_world(tmp_path: Path) -> None:
    (tmp_path / "clients.pcap").touch()
    asked = Question(["127.0.0.1:5300"], capture=tmp_path / "clients.pcap", as_resolvers=True)
    found = drafted(asked, tmp_path).document
    assert found.dataset == {} and not found.hosts.get("internet") and "resolve_from" not in found.options


@pytest.mark.parametrize("as_resolvers", [False, True])
def test_a_running_server_is_asked_the_queries_of_a_file(tmp_path: Path, as_resolvers: bool) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("www.example.com A\n")
    asked = Question(["127.0.0.1:5300"], rates_qps=[1e3], queries=queries, as_resolvers=as_resolvers)
    found = drafted(asked, tmp_path)
    assert found.document.options["serve_as"] == ("resolver" if as_resolvers else "primary")
    assert found.document.queries is not None and found.document.queries.file == str(queries)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Question(["bind@forky", "bind@forky"], rates_qps=[1.0]), "named twice"),
        (Question(["unbound@forky", "nsd@forky"], rates_qps=[1.0]), "no role in common"),
        (Question(["nsd@forky"], measure="transfer", transports=["udp"]), "--transport udp"),
        (Question(["nsd@forky"], rates_qps=[1.0], rtt_ms=10.0), "the path of a transfer"),
        (Question(["nsd@forky"], rates_qps=[1.0], loss_percent=0.5), "the path of a transfer"),
        (Question(["nsd@forky"], measure="transfer", capture=Path("c")), "sends no queries"),
        (Question(["nsd@forky"], measure="max", capture=Path("c")), "their own times"),
        (Question(["nsd@forky"], queries=Path("q"), capture=Path("c")), "their own times"),
        (Question(["nsd@forky"], capture=Path("c"), expect="noerror-nonempty"), "--expect is about"),
        (Question(["bind@forky"], measure="answers"), "needs two servers or more"),
        (Question(["bind@forky", "nsd@forky"], measure="answers", transports=["udp"]), "needs two servers or more"),
        (Question(["bind@forky", "nsd@forky"], measure="answers", expect="noerror-nonempty"), "needs two servers"),
        (Question(["bind@forky", "nsd@forky"], measure="answers", capture=Path("c")), "needs two servers or more"),
        (Question(["nsd@forky"], rates_qps=[1.0], transports=["udp", "xot"]), "--transport xot"),
        (Question(["nsd@forky"], measure="transfer", queries=Path("q")), "sends no queries"),
        (Question(["nsd@forky"], rates_qps=[1.0], capture=Path("c")), "their own times"),
        (Question(["nsd@forky"], capture=Path("c")), "does not have"),
        (Question(["127.0.0.1", "bind@forky"], rates_qps=[1.0]), "different networks"),
        (Question(["127.0.0.1"], measure="transfer"), "these run already"),
        (Question(["127.0.0.1"], rates_qps=[1.0]), "does not know what"),
        (Question(["nothing@forky"], rates_qps=[1.0]), "nothing"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Question, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        experiment(asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nsd@forky", "--max", "--transfer"], "different questions"),
        (["nsd@forky", "--rate", "fast"], "--rate 'fast'"),
        (["nsd@forky", "--zone", "/nonexistent.zone"], "no file /nonexistent.zone"),
        (["nsd@forky", "--duration", "5"], "the unit is missing"),
        (["nsd@forky", "--precision", "0%"], "not a percentage"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    status, _, err = output(monkeypatch, capsys, "bench", *arguments)
    assert status == 2
    assert message in " ".join(err.split()) and "hint:" in err


@pytest.mark.parametrize("question", ["--max", "--capture"])
def test_the_hint_for_a_server_of_others_is_an_option_of_bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, question: str
) -> None:
    (tmp_path / "queries.txt").write_text("www.example.com A\n")
    captures.write(tmp_path / "clients.pcap", captures.queries(), lambda packet: (1, captures.frame(packet)))
    asked = ["--max", "--queries", f"{tmp_path}/queries.txt"]
    if question == "--capture":
        asked = ["--capture", f"{tmp_path}/clients.pcap", "--resolver"]
    words = ["bench", "192.0.2.53", *asked, "--i-am-authorized", "192.0.2.53", "--dry-run"]
    status, _, err = output(monkeypatch, capsys, *words)
    assert status == 2 and "that you name" in err
    named = re.findall(r"--set options\.\w+=\d+", " ".join(err.split()))
    status, _, err = output(monkeypatch, capsys, *words, *" ".join(named).split())
    assert status == 0, err


def test_the_experiment_is_printed_as_it_would_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, _ = output(monkeypatch, capsys, "bench", "bind@forky", "knot@forky", "--print-experiment")
    assert status == 0
    path = tmp_path / "mine.toml"
    path.write_text(out)
    assert preparation.draft(preparation.Request(str(path))).document.options["rate_qps"] == 10_000


def test_bars_are_as_long_as_what_was_measured(tmp_path: Path) -> None:
    plan = synthetic.Plan(zones=(100,), repeats=6)
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    console.print(terminal_bars(run))
    lines = console.export_text().splitlines()
    assert len(lines) == 3 and all(len(line) <= 80 for line in lines)
    shown = terminal_bars(run).bars
    medians = [run_median(run, variant.id) for variant in run.manifest.variants]
    assert max(bar.high for bar in shown) == pytest.approx(1)
    assert all(bar.low <= bar.median <= bar.high for bar in shown)
    assert shown[0].median / shown[1].median == pytest.approx(medians[0] / medians[1])


def run_median(run: Run, variant: str) -> float:
    return median(trial.result or 0.0 for trial in run.done(variant))


def test_results_are_exported_in_formats_that_are_checked_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = output(monkeypatch, capsys, "bench", "nsd@forky", "--export", "json,excel", "--dry-run")
    assert status == 2 and "no export format 'excel'" in err and "markdown" in err
    status, _, err = output(monkeypatch, capsys, "bench", "nsd@forky", "--export", "json,html", "--dry-run")
    assert status == 0, err


@pytest.mark.usefixtures("undrawn")
def test_a_report_has_no_bars_unless_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = report.write(synthetic.build(tmp_path / "run", synthetic.Plan(zones=(100,), repeats=6)))
    capsys.readouterr()
    report.show(written)
    plain = capsys.readouterr().out
    report.show(written, bars=True)
    with_bars = capsys.readouterr().out
    assert with_bars.endswith(plain) and len(with_bars.splitlines()) >= len(plain.splitlines()) + 3
    report.show(written, full=True)
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {written.path}"
