"""`dnsrig plan` on the command line: what it prints, and the exit status that scripts use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from command_line import output
from drawn import pictures_as_they_were
from test_model_combine import MANY

from dnsrig.cli import _units
from dnsrig.errors import UsageError
from dnsrig.lab import conditions
from dnsrig.prediction.held_out import Coverage
from dnsrig.prediction.scenario import MOST
from dnsrig.report import plan as shown
from dnsrig.report import plan_chart
from dnsrig.servers import all_drivers

S3 = [
    "--zones",
    "100000",
    "--records",
    "3",
    "--rtt",
    "250ms",
    "--jitter",
    "50ms",
    "--loss",
    "0.1%",
    "--bandwidth",
    "20mbit",
]
CUBIC = ["--congestion", "cubic"]
S3 += CUBIC
POOLED = [
    "--secondary",
    "knot",
    "--setting",
    "server.background-workers=50",
    "--setting",
    "server.remote-pool-limit=100",
]
DEFAULT_CONGESTION = "bbr"
"""The machine's congestion control, as these tests pretend."""
GOLDEN = Path(__file__).parent / "golden/plan.txt"


def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(conditions, "sysctl", {"net.ipv4.tcp_congestion_control": DEFAULT_CONGESTION}.get)
    return output(monkeypatch, capsys, "plan", *arguments)


def test_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = plan(monkeypatch, capsys, *S3, *POOLED)
    assert (code, err) == (0, "")
    lines = "\n".join(line.rstrip() for line in out.splitlines()) + "\n"
    assert lines == GOLDEN.read_text(), f"if that is meant, write this to {GOLDEN}:\n{lines}"


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = plan(monkeypatch, capsys, *S3, *POOLED, "--json")
    (found,) = json.loads(out)["predictions"]
    assert code == 0 and found["binds"] == "round trips"
    assert found["low_s"] < 1259 < found["high_s"], "S3 has 20 min 59 s"
    assert [limit["binds"] for limit in found["limits"]].count(True) == 1
    assert {"name", "time_s", "low_s", "high_s", "says", "remedy", "source"} <= set(found["limits"][0])
    assert any("replica" in other["change"] for other in found["alternatives"])


def test_what_comes_on_top_is_said_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One worker that keeps its connection: 250 s of round trips, and 205 s of bytes with the link to itself."""
    large = ["--zones", "1000", "--records", "10000", "--rtt", "250ms", "--bandwidth", "20mbit"]
    _, out, _ = plan(monkeypatch, capsys, *large, "--policy", "reused", "--workers", "1")
    said = " ".join(out.split())
    assert "about 7.6 min" in said and "Link rate adds 3.4 min" in said
    assert "connections kept" not in said
    _, out, _ = plan(monkeypatch, capsys, *large, "--policy", "one", "--workers", "1")
    assert "connections kept (policy reused) 7.6 min round trips" in " ".join(out.split())


def test_what_binds_may_be_two_limits_that_are_not_the_slowest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers: 125 s of round trips and 647 s of CUBIC, one after the other, are more than the 700 s of the link
    that they share."""
    large = [
        "--zones",
        "1000",
        "--records",
        "10000",
        "--rtt",
        "250ms",
        "--loss",
        "0.1%",
        "--bandwidth",
        "5.85mbit",
        *CUBIC,
    ]
    _, out, _ = plan(monkeypatch, capsys, *large, "--policy", "reused", "--workers", "2")
    rows = [line for line in out.splitlines() if line.startswith(("link rate", "congestion control"))]
    assert rows[0].startswith("link rate") and "binds" not in rows[0] and "binds" in rows[1]
    assert "Limited by congestion control: " in out and "about 13 min" in out


LOSSY = ["--zones", "1", "--records", "1e6", "--rtt", "60ms", "--loss", "0.5%", "--bandwidth", "100mbit"]


def test_connections_begin_with_the_machines_congestion_control(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    by_default, named, other = (
        plan(monkeypatch, capsys, *LOSSY, *words)[1]
        for words in ([], ["--congestion", "bbr"], ["--congestion", "cubic"])
    )
    said = " ".join(by_default.split())
    assert "tcp, bbr" in by_default and "about 4.22 s" in said
    assert "congestion control bbr is the default of this machine (net.ipv4.tcp_congestion_control)" in said
    assert "default of this machine" not in named and "about 4.22 s" in " ".join(named.split())
    assert "about 4.22 s" not in " ".join(other.split())


def test_a_machine_whose_congestion_control_has_no_law(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"{__name__}.DEFAULT_CONGESTION", "dctcp")
    code, _, err = plan(monkeypatch, capsys, *LOSSY)
    assert (
        code == 2
        and "there is no law for this machine's default congestion control, dctcp" in err
        and "--congestion" in err
    )


@pytest.mark.parametrize("transport", ["tcp+tsig", "xot+tsig"])
def test_every_transport_of_experiments_has_a_prediction(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], transport: str
) -> None:
    """A hundred zones of one message each have a TSIG record each, of 88 bytes."""
    far = ["--zones", "100", "--records", "4", "--rtt", "1ms", "--bandwidth", "1mbit", "--secondary", "nsd", "--json"]

    def link_s(name: str) -> float:
        (found,) = json.loads(plan(monkeypatch, capsys, *far, "--transport", name)[1])["predictions"]
        assert f", {name}, " in found["title"]
        return next(limit["time_s"] for limit in found["limits"] if limit["name"] == "link rate")

    without = transport.removesuffix("+tsig")
    bytes_per_s = 1e6 / 8 * 1448 / 1500
    factor = 1.02 if without == "xot" else 1
    assert link_s(transport) - link_s(without) == pytest.approx(8800 * factor / bytes_per_s, rel=0.01)


@pytest.mark.parametrize(
    ("secondary", "possible", "remedy"),
    [
        ("bind", ["16 workers"], "more workers (transfers-per-ns and transfers-in)."),
        ("knot", ["connections kept"], "more workers (server.background-workers), or connections that are kept."),
        ("powerdns", ["database replication instead of AXFR", "16 workers"], "more workers (retrieval-threads)."),
    ],
)
def test_advice_is_possible_for_the_secondary(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    secondary: str,
    possible: list[str],
    remedy: str,
) -> None:
    far = ["--zones", "10000", "--rtt", "250ms", "--bandwidth", "20mbit", "--secondary", secondary]
    (found,) = json.loads(plan(monkeypatch, capsys, *far, "--json")[1])["predictions"]
    own = [other["change"] for other in found["alternatives"] if not other["another_secondary"]]
    assert all(any(change.startswith(name) for change in own) for name in possible)
    assert not any("pipelined" in change for change in own)
    assert [other["another_secondary"] for other in found["alternatives"]] == sorted(
        other["another_secondary"] for other in found["alternatives"]
    )
    said = " ".join(plan(monkeypatch, capsys, *far)[1].split())
    assert (
        f"To lift it: {remedy}" in said
        and "what another secondary could do change time then binds pipelined AXFR" in said
    )


@pytest.mark.parametrize(("within", "status"), [("30min", 0), ("5min", 1), ("21min", 3)])
def test_within(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], within: str, status: int) -> None:
    assert plan(monkeypatch, capsys, *S3, *POOLED, "--within", within)[0] == status


@pytest.mark.parametrize(
    ("within", "words"), [("30min", "Within 30 min: yes"), ("5min", "Within 5.0 min: no"), ("21min", "undecided")]
)
def test_within_is_answered_in_words_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], within: str, words: str
) -> None:
    assert words in plan(monkeypatch, capsys, *S3, *POOLED, "--within", within)[1]


def test_what_nothing_is_known_of_is_not_foretold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """BBR with 30 % of loss: no slower than Reno, which takes hours; and no faster than the other limits."""
    lossy = ["--zones", "1", "--records", "1e6", "--rtt", "300ms", "--loss", "30%", "--bandwidth", "100mbit"]
    code, out, _ = plan(monkeypatch, capsys, *lossy, "--congestion", "bbr", "--within", "1min")
    said = " ".join(out.split())
    assert code == 3 and "at most 8.5 h; how much less is not known" in said and "up to 10% of loss" in said


@pytest.mark.parametrize(
    ("setting", "noted"),
    [("transfers-per-n=100", True), ("transfers-per-ns=many", True), ("transfers-per-ns=9", False)],
)
def test_a_setting_that_changes_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str, noted: bool
) -> None:
    near = ["--zones", "1000", "--rtt", "100ms", "--secondary", "bind", "--setting", setting]
    assert ("makes no difference here" in plan(monkeypatch, capsys, *near)[1]) is noted


def test_a_bound_is_never_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """How much longer than the port wall it takes nobody knows."""
    near = ["--zones", "30000", "--rtt", "1ms", "--workers", "1000", "--policy", "one"]
    assert plan(monkeypatch, capsys, *near, "--within", "10h")[0] == 3
    assert plan(monkeypatch, capsys, *near, "--within", "50s")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ([], "the number of zones is missing", "--zones 100000"),
        (["--zones", "10"], "there is no limit to compute", "--rtt"),
        (["--zones", "0", "--rtt", "1ms"], "zones = 0", "from 1 to"),
        (["--zones", "10", "--rtt", "250"], "--rtt 250: the unit is missing", "250ms"),
        (
            ["--zones", "10", "--rtt", "250", "--loss", "1", "--bandwidth", "20"],
            "--rtt 250: the unit is missing, --loss '1', --bandwidth '20'",
            "0.2%",
        ),
        (
            ["--zones", "10", "--buffer", "3", "--within", "9"],
            "--buffer '3', --within 9: the unit is missing",
            "3MB; write 9s",
        ),
        (["--zones", "10", "--rtt", "1ms", "--loss", "0.1"], "--loss '0.1'", "0.2%"),
        (["--zones", "10", "--rtt", "1ms", "--loss", "100%"], "a loss of 1", "less than 100 %"),
        (["--zones", "10", "--rtt", "1ms", "--bandwidth", "20"], "--bandwidth '20'", "20mbit"),
        (["--zones", "10", "--rtt", "1ms", "--bandwidth", "0mbit"], "carries nothing", "20mbit"),
        (["--zones", "10", "--rtt", "1ms", "--jitter", "1s"], "jitter of 1 s", "half of the round trip"),
        (["--zones", "10", "--rtt", "1ms", "--policy", "fast"], "no policy 'fast'", "pipelined"),
        (["--zones", "10", "--rtt", "1ms", "--transport", "udp"], "no transport 'udp'", "xot"),
        (["--zones", "10", "--rtt", "1ms", "--congestion", "vegas"], "'vegas'", "cubic"),
        (["--zones", "10", "--rtt", "1ms", "--secondary", "tinydns"], "'tinydns'", "bind, knot"),
        (["--zones", "10", "--rtt", "1ms", "--primary", "tinydns"], "'tinydns' as a primary", "bind, knot"),
        (["--zones", "10", "--secondary", "knot", "--setting", "x"], "--setting 'x'", "NAME=VALUE"),
        (["--zones", "10", "--rtt", "1ms", "--only", "server=x"], "--only", "--from-run RUN"),
        (["--zones", "10", "--rtt", "1ms", "--setting", "x=1"], "--setting without --secondary", "bind"),
        (["--zones", "10", "--from-run", "x", "--secondary", "bind"], "--secondary with --from-run", "--only"),
        (["--from-run", "x", "--within", "1h"], "the number of zones is missing", "--zones"),
        (["--zones", "10", "--rtt", "1ms", "--records", "nan"], "records: nan", "above 0"),
        (["--zones", "10", "--rtt", "1ms", "--records", "inf"], "records: inf", "at most 10^12"),
        (["--zones", "10", "--rtt", "1ms", "--bytes", "inf"], "bytes per record: inf", "at most 10^12"),
        (["--zones", "1" + "0" * 24, "--rtt", "1ms"], "zones = 1000", "10^12"),
        (["--zones", "10", "--rtt", "999h"], "round trips of", "at most an hour"),
        (["--zones", "10", "--rtt", "1ms", "--policy", "pipelined", "--connections", "0"], "connections = 0", "from 1"),
        (["--from-run", "nowhere"], "there is no run at nowhere", ""),
    ],
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, hint: str
) -> None:
    code, out, err = plan(monkeypatch, capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err and hint in err and "Traceback" not in err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = synthetic.Plan(zones=(100, 300, 1000, 3000), repeats=5)
    return synthetic.build(tmp_path_factory.mktemp("plan") / "run", made)


def test_from_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path) -> None:
    code, out, _ = plan(monkeypatch, capsys, "--from-run", str(run))
    assert code == 0
    assert "server=knot@system" in out and "3,000 zones" in out and "Coverage: " in out
    assert "Not counted: 10 behind the port wall" in " ".join(out.split())


def test_a_fit_answers_for_a_million_zones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    """The made-up Knot does 800 zones a second."""
    arguments = ["--from-run", str(run), "--only", "server=knot@system", "--zones", "1000000", "--policy", "pipelined"]
    code, out, _ = plan(monkeypatch, capsys, *arguments, "--sites", "1000", "--uplink", "10gbit", "--json")
    found = json.loads(out)
    limits = {limit["name"]: limit["time_s"] for limit in found["predictions"][0]["limits"]}
    assert code == 0
    assert limits["secondary's work"] == pytest.approx(1250, rel=0.15)
    assert "primary's uplink" in limits and "primary's work" in limits
    assert found["held_out"]["rows"][0]["largest"] == 3000


def test_a_run_says_which_primary_it_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    """To many sites its work is as measured there; to one it is in the times already; another one is as it is known."""
    arguments = ["--from-run", str(run), "--only", "server=knot@system", "--zones", "3000", "--json"]

    def limits(*more: str) -> dict[str, str]:
        found = json.loads(plan(monkeypatch, capsys, *arguments, *more)[1])["predictions"][0]
        assert not any("is assumed to be" in note for note in found["notes"])
        return {limit["name"]: limit["says"] for limit in found["limits"]}

    assert "primary's work" not in limits()
    measured = limits("--sites", "10")["primary's work"]
    assert "10 sites" in measured and " of " not in measured
    assert "of PowerDNS" in limits("--sites", "10", "--primary", "powerdns", "--policy", "one")["primary's work"]


def test_a_thousand_sites_are_work_for_a_primary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """10^9 transfers at 26 µs are 7.2 h of one CPU, however wide the uplink."""
    far = ["--zones", "1000000", "--rtt", "250ms", "--policy", "pipelined", "--workers", "10000", "--sites", "1000"]
    code, out, _ = plan(monkeypatch, capsys, *far, "--uplink", "10gbit", "--within", "1h")
    said = " ".join(out.split())
    assert code == 1 and "about 7.2 h" in said and "primary's work" in said
    assert "assumed to be Knot DNS" in said and "many far sites at a time were not measured" in said
    _, out, _ = plan(monkeypatch, capsys, *far, "--primary", "bind")
    assert "1,000 sites × 0.115 ms of BIND on one CPU" in " ".join(out.split()) and "assumed to be" not in out
    _, out, _ = plan(monkeypatch, capsys, *far[:-4], "--policy", "replica", "--sites", "1000")
    assert "the cost of policy replica over tcp for the sender was not measured" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--zones", "10000", "--secondary", "bind"], None),
        (["--zones", "10001", "--secondary", "bind"], "work of BIND is measured up to 10,000 zones"),
        (["--zones", "30000", "--secondary", "nsd"], None),
        (["--zones", "1", "--records", "7e6", "--secondary", "nsd"], "measured up to 6,500,000 records"),
        (["--zones", "10"], "the work of a secondary is not counted"),
        (["--zones", "10", "--secondary", "knot", "--policy", "replica"], "the work of a secondary is not counted"),
    ],
)
def test_what_is_extrapolated_or_left_out_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str | None
) -> None:
    out = " ".join(plan(monkeypatch, capsys, *arguments, "--rtt", "100ms")[1].split())
    assert ("is measured up to" in out or "is not counted here" in out) is (said is not None)
    assert said is None or said in out


def test_beyond_the_largest_size_of_a_run_is_extrapolated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    arguments = ["--from-run", str(run), "--only", "server=knot@system", "--zones"]
    beyond = "9,000 zones are extrapolated: the largest size that the run has measured is 3,000"
    assert beyond in " ".join(plan(monkeypatch, capsys, *arguments, "9000")[1].split())
    assert "extrapolated" not in plan(monkeypatch, capsys, *arguments, "3000")[1]


def test_unknown_variants_of_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    code, out, err = plan(monkeypatch, capsys, "--from-run", str(run), "--only", "server=nsd@system")
    assert (code, out) == (2, "") and "it has: server=bind@system" in err


def test_chart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    svg, png = tmp_path / "plan.svg", tmp_path / "plan.png"
    assert plan(monkeypatch, capsys, *S3, *POOLED, "--svg", str(svg), "--png", str(png))[0] == 0
    drawn = svg.read_text()
    assert drawn.startswith("<svg") and "round trips" in drawn and "link rate" in drawn
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_chart_where_few_zones_meet_no_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """At no distance ports alone are known to limit, and only from 28,233 zones on."""
    svg = tmp_path / "ports.svg"
    code, _, err = plan(monkeypatch, capsys, "--zones", "100000", "--rtt", "0ms", "--svg", str(svg))
    assert (code, err) == (0, "") and "ports" in svg.read_text()


def test_a_chart_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    code, _, err = plan(monkeypatch, capsys, *S3, "--svg", str(tmp_path / "file" / "x.svg"))
    assert code == 2 and "cannot write" in err and "Traceback" not in err


def test_a_chart_of_as_many_zones_as_there_may_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    most = ["--zones", str(10**12), "--rtt", "250ms", "--svg", str(tmp_path / "most.svg")]
    assert plan(monkeypatch, capsys, *most)[0] == 0


def test_a_chart_is_of_one_prediction(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    code, _, err = plan(monkeypatch, capsys, "--from-run", str(run), "--zones", "9", "--svg", str(tmp_path / "x.svg"))
    assert code == 2 and "a chart shows one prediction" in err


def test_named_sites(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dnsrig.lab.sites")
    code, out, _ = plan(
        monkeypatch, capsys, "--zones", "100000", "--records", "3", "--site", "s3-far", *POOLED, *CUBIC, "--json"
    )
    found = json.loads(out)["predictions"][0]
    _, same, _ = plan(monkeypatch, capsys, *S3, *POOLED, "--json")
    assert code == 0 and found == json.loads(same)["predictions"][0]
    assert plan(monkeypatch, capsys, "--zones", "10", "--site", "atlantis")[0] == 2


@pytest.mark.parametrize(
    ("text", "value"), [("250ms", 0.25), ("1.5 s", 1.5), ("30min", 1800), ("2H", 7200), ("10us", 1e-5)]
)
def test_durations(text: str, value: float) -> None:
    assert _units.duration_s(text, "--rtt") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "ms", "-1ms", "1e3ms", "1 2ms", "nan s", "1ms;", "١ms", "9" * 40 + "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        _units.duration_s(text, "--rtt")


@pytest.mark.parametrize("secondary", ["bind", "knot", "nsd", "powerdns"])
@pytest.mark.parametrize("transport", ["tcp", "xot"])
@pytest.mark.parametrize("zones", ["1", "10000"])
def test_no_advice_is_beyond_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], secondary: str, transport: str, zones: str
) -> None:
    """Each advice is compared with what the server's driver declares: databases, policies, limits, XoT, IXFR."""
    driver = all_drivers()[secondary]
    behaviour = driver.as_secondary
    assert behaviour is not None
    far = ["--zones", zones, "--rtt", "250ms", "--loss", "1%", "--bandwidth", "2mbit", *CUBIC, "--transport", transport]
    code, out, err = plan(monkeypatch, capsys, *far, "--secondary", secondary, "--json")
    if transport == "xot" and driver.support("XoT").since("secondary") is None:
        assert code == 2 and f"{secondary} has no XoT as a secondary" in err
        return
    (found,) = json.loads(out)["predictions"]
    advice = [other["change"] for other in found["alternatives"] if not other["another_secondary"]]
    advice += [limit["remedy"] for limit in found["limits"]]
    pools = bool(behaviour.connections_setting)
    pipelines = behaviour.policy({}, "tcp") == "pipelined"
    for text in advice:
        assert bool(driver.databases) or "replica" not in text
        assert pools or not any(
            words in text for words in ("connections kept", "connections that are kept", "keep conn")
        )
        assert pipelines or not any(words in text for words in ("pipelin", "window of"))
        assert "IXFR" not in text or driver.support("IXFR").since("secondary")
    for other in found["alternatives"]:
        if other["change"].startswith("a higher "):
            assert other["change"].removeprefix("a higher ") in {
                limit.setting for limit in driver.limits("secondary", {})
            }
    shown = plan(monkeypatch, capsys, *far, "--secondary", secondary)[1]
    possible = shown.partition("what another secondary could do")[0]
    assert not any(other["change"] in possible for other in found["alternatives"] if other["another_secondary"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--secondary", "bind", "--policy", "replica"], "bind cannot take zones from a database"),
        (["--secondary", "nsd", "--policy", "remote"], "nsd cannot take zones from a database"),
        (["--secondary", "powerdns", "--transport", "xot"], "powerdns has no XoT as a secondary"),
        (["--primary", "powerdns", "--transport", "xot+tsig"], "powerdns has no XoT as a primary"),
    ],
)
def test_what_a_server_cannot_do_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    code, out, err = plan(monkeypatch, capsys, "--zones", "10", "--rtt", "1ms", *options)
    assert (code, out) == (2, "") and message in err


@pytest.mark.parametrize(("primary", "has_ixfr"), [("bind", True), ("powerdns", False)])
def test_ixfr_is_advised_only_with_a_primary_that_has_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], primary: str, has_ixfr: bool
) -> None:
    slow = ["--zones", "10", "--records", "1e6", "--rtt", "1ms", "--bandwidth", "1mbit", "--primary", primary]
    assert ("IXFR" in plan(monkeypatch, capsys, *slow)[1]) is has_ixfr


def test_the_answer_comes_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = plan(monkeypatch, capsys, *S3, *POOLED, "--within", "30min")[1].splitlines()
    assert "about 21 min" in lines[0] and lines[1].startswith("Limited by ") and lines[2].startswith("To lift it: ")
    assert lines[3].startswith("Within 30 min: yes")


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (0.0, "0 s"),
        (0.00099, "< 1 ms"),
        (0.002, "2.00 ms"),
        (0.5, "0.500 s"),
        (119.4, "119 s"),
        (120.0, "2.0 min"),
        (599.0, "10.0 min"),
        (600.0, "10 min"),
        (7199.0, "120 min"),
        (7200.0, "2.0 h"),
        (172_799.0, "48 h"),
        (172_800.0, "2.0 d"),
        (8_640_000.0, "100 d"),
    ],
)
def test_a_duration_has_the_unit_that_a_person_thinks_in(time_s: float, text: str) -> None:
    assert shown.duration(time_s) == text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "yes, the whole interval"),
        (1, "no, not even the shortest time of the interval"),
        (3, "undecided, because the interval contains it"),
    ],
)
def test_the_exit_status_in_words(status: int, words: str) -> None:
    assert shown.within_sentence(1800.0, status) == f"Within 30 min: {words}."


def coverage(held: int = 3, trials: int = 4, **left_out: int) -> str:
    nothing = {"unfinished": 0, "behind_wall": 0, "unfitted": 0}
    return shown.coverage_sentence(Coverage(held=held, trials=trials, narrow=1, rows=2, **nothing | left_out))


def test_what_a_fit_covers_is_counted() -> None:
    whole = (
        "Coverage: 3 of 4 trials that the fit had not seen lie in their 90% interval; 1 of 2 intervals are within ±30%."
    )
    assert coverage() == whole
    assert coverage(unfinished=1) == f"{whole} Not counted: 1 that did not finish, of any size."
    assert coverage(behind_wall=2, unfitted=5) == (
        f"{whole} Not counted: 2 behind the port wall, where the law has only a smallest time."
        " Not counted: 5 of a largest size with too few trials below it."
    )
    nothing = "Coverage: no trial of a largest size can be compared with an interval."
    assert coverage(trials=0) == nothing
    assert coverage(trials=0, unfinished=3) == f"{nothing} Not counted: 3 that did not finish, of any size."


def test_the_chart_of_a_prediction_is_as_it_was() -> None:
    charts = {str(zones): plan_chart.draw(replace(MANY, zones=zones)) for zones in (5, 100_000, MOST)}
    assert pictures_as_they_were("drawn/plan", charts)
