"""The certificate: its file, its page, where it lies, and what runs and reports have of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import synthetic
from calibration_data import CONDITIONS, certificate, cited, floor, of, through_nic
from command_line import output
from drawn import pictures_as_they_were
from golden_files import same
from rich.console import Console
from test_terminal import printed

from dnsrig import certificate as file
from dnsrig.certificate import CERTIFICATE_VERSION, FILE, Capacity, Certificate, Smallest
from dnsrig.comparison import calibration
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import calibration as measuring
from dnsrig.experiment import certificates, model, preparation
from dnsrig.experiment.calibration import machine, through
from dnsrig.lab import nics
from dnsrig.report import calibrated, certificate_charts, figures
from dnsrig.report import certificate as page
from dnsrig.rundir import Machine, write_json
from dnsrig.runs.load_result import LoadResult, Try
from dnsrig.runs.run import Run
from dnsrig.traps import all_traps

GOLDEN = Path(__file__).parent / "golden/certificate.json"


def test_the_file_is_as_it_was() -> None:
    """With DNSRIG_UPDATE_GOLDEN=1 in the environment, what is written becomes what is expected."""
    text = through_nic().model_dump_json(indent=2) + "\n"
    if os.environ.get("DNSRIG_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
    assert file.read(GOLDEN) == through_nic()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[]", "not what dnsrig writes"),
        (json.dumps({"certificate_version": CERTIFICATE_VERSION + 1}), "newer dnsrig"),
        (json.dumps(certificate().model_dump(mode="json") | {"more": 1}), "more"),
    ],
)
def test_what_is_no_certificate_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DnsrigError, match=says):
        file.read(tmp_path)


def test_the_page_has_everything_and_runs_nothing(tmp_path: Path) -> None:
    write_json(tmp_path / FILE, certificate())
    page.write(tmp_path)
    text = (tmp_path / file.PAGE).read_text()
    assert text.count("<svg") == 3 and "http://" not in text.replace("http://www.w3.org", "")
    assert "<script" not in text and "&lt;script&gt;" in text and "&lt;b&gt;" in text
    for told in (
        "61.0 µs [54.9..73.2]",
        "240,000/s",
        "none visible",
        "42 % [42..42 %]",
        "lost 9 of 1,000",
        "not known",
    ):
        assert told in text


@pytest.mark.full
def test_the_page_sets_both_paths_beside_each_other() -> None:
    found = through_nic()
    _, rows = page.tables(found)["floor"]
    assert [row[:3] for row in rows] == [
        [transport, path, rate]
        for transport, rate in (("udp", "2,000"), ("udp", "10,000"), ("dot", "2,000"))
        for path in ("veth", "eth1 – rack-2:eth1")
    ]
    assert (
        "Through eth1 – rack-2:eth1 p50 is 45.5 µs [41.0..54.6] and p99 91.0 µs [81.9..109] at 2,000 a second:"
        " 15.0 µs more and 30.0 µs more than over veth."
    ) in page.short(found)
    assert any("2.00 µs less and 4.00 µs less" in sentence for sentence in page.short(found))
    (clock,) = (said for what, said in page.tables(found)["clock"][1] if what == "clock of rack-2")
    assert "+3,700.000 ms ± 20.5 µs ahead" in clock and "wall clock -1.500 ms ± 30.0 µs; by 3 comparisons" in clock
    _, facts = page.tables(found)["interfaces"]
    assert ["offloads.rx-gro", "yes", "no"] in facts
    text = page.render(found)
    assert "rack-2: kernel" in text and "6.1.0-other" in text
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert ["eth1 – rack-2:eth1" in each for each in drawn] == [True, True, False], "floor and lag"


def test_a_page_of_what_has_no_figures(tmp_path: Path) -> None:
    lacking = ("floors", "capacities", "noise", "links", "disturbances")
    empty = certificate().model_copy(update={name: [] for name in lacking})
    assert "<svg" not in page.render(empty)
    assert calibration.key_figures(empty) == {}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("found", [certificate(), through_nic()])
def test_the_summary_fits_a_terminal(width: int, found: Certificate) -> None:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(page.terminal(found, Path("made")))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "remedy: `top`" in text and "61.0 µs" in text and "made/certificate.html" in text


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a machine that has an id."""
    (tmp_path / "machine-id").write_text("0123456789abcdef\n")
    monkeypatch.setattr(certificates, "MACHINE_ID", tmp_path / "machine-id")
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    return tmp_path


def made(where: Path, name: str, found: Certificate) -> None:
    write_json(where / name / FILE, found.model_copy(update={"id": name}))


def test_the_list_has_a_whole_line_for_each_sentence_however_narrow_the_terminal(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, name, found = certificates.folder(), "20250101T0-aaaa", certificate()
    (where / name).mkdir(parents=True)
    made(where, name, found)
    monkeypatch.setenv("COLUMNS", "30")
    _, out, _ = output(monkeypatch, capsys, "calibrate", "--list")
    head, *sentences = out.splitlines()
    assert head == f"{name}  {found.created}  {found.scale}  {where / name}"
    assert sentences == [f"  {sentence}" for sentence in page.short(found)]
    assert max(map(len, sentences)) > 30


def test_a_run_cites_the_newest_of_its_machine(cache: Path) -> None:
    where, here = certificates.folder(), certificate().model_copy(update={"machine": certificates.machine({})})
    assert certificates.cited({}) == {}
    for name, found in (("20250101T0-aaaa", here), ("20250201T0-bbbb", here), ("20250301T0-cccc", certificate())):
        (where / name).mkdir(parents=True)
        made(where, name, found)
    (where / ".unfinished-20250401T0-dddd").mkdir()
    made(where, ".unfinished-20250401T0-dddd", here)
    (where / "20250501T0-eeee").mkdir()
    (where / "20250501T0-eeee" / FILE).write_text("cut")
    found = file.cited(certificates.cited({}))
    assert found is not None and found.id == "20250201T0-bbbb", "not another machine's, not one that is not whole"
    assert found.conditions == CONDITIONS and len(found.digest) == 64
    assert found.figures["floor_p99_us"] == 61 and found.figures["smallest_of_10_percent"] == 9.9


def test_the_manifest_of_a_run_names_it(cache: Path) -> None:
    where = certificates.folder()
    (where / "20250101T0-aaaa").mkdir(parents=True)
    made(where, "20250101T0-aaaa", certificate().model_copy(update={"machine": certificates.machine({})}))
    one = ["rate_qps=2000", "transport=udp", "baseline={}", "dataset.zones=3"]
    manifest = preparation.prepare(preparation.Request("echo-baseline", settings=one), print)
    found = file.cited(manifest.conditions)
    assert found is not None and found.id == "20250101T0-aaaa"
    (said,) = all_traps()["calibration-stale"].examine(Run(cache, manifest))
    assert said.verdict == "found" and "Synthetic CPU" in said.summary, "it is of another machine than this one"


def test_a_machine_without_an_id_is_known_by_its_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MACHINE_ID", "/nonexistent")
    assert certificates.machine({"cpus": 2}) == certificates.machine({"cpus": 2, "kernel": "6.1"})
    assert certificates.machine({"cpus": 2}) != certificates.machine({"cpus": 4})


def test_what_old_or_newer_runs_say_is_no_citation() -> None:
    assert file.cited({}) is None
    assert file.cited({"calibration": {"id": "x", "more": 1}}) is None
    assert file.cited({"calibration": cited()}) is not None


@pytest.mark.parametrize(
    ("percent", "text"), [(0.5, "0.5 %"), (9.87, "9.9 %"), (14.3, "14 %"), (899, "899 %"), (6130, "62 times")]
)
def test_by_how_much(percent: float, text: str) -> None:
    assert figures.slower(percent) == text


def test_the_line_of_a_report(tmp_path: Path) -> None:
    manifest = Run.open(synthetic.build(tmp_path / "run")).manifest
    assert calibrated.line(manifest) == calibrated.NOT_CALIBRATED
    manifest.conditions["calibration"] = cited()
    assert calibrated.line(manifest) == (
        "Calibrated 2025-01-01 (quick, 20250101T120000Z-test; disturbed by load): floor p99 61.0 µs (udp at 2,000/s, 3 trials); smallest"
        " difference 42 % with 5, 9.9 % with 10, 5.5 % with 20 repeats (p99 of echo@engine). Taken with kernel"
        " 6.1.0-synthetic, cpu_model Synthetic CPU, cpus 2, clocksource tsc, dnsrig 0.0.0."
    )
    manifest.conditions["calibration"] = cited(through_nic())
    assert "3 trials; 91.0 µs through eth1 – rack-2:eth1); smallest" in calibrated.line(manifest)
    manifest.conditions["calibration"] = cited(figures={})
    assert "no figures" in calibrated.line(manifest)
    manifest.machines = [Machine(name="a", conditions={}), Machine(name="b", conditions={"calibration": cited()})]
    assert "Machine a: Not calibrated" in calibrated.line(manifest)
    assert "Machine b: Calibrated" in calibrated.line(manifest)


def test_the_self_test_of_a_link_as_a_certificate_has_it() -> None:
    way = {"asked": {"delay_ms": 10.0}, "found": {"packets": 9}, "expected": {"median_ms": [9, 11]}}
    told = {"works": False, "rtt_min_us": 1, "rtt_median_us": 2, "rtt_max_us": 3, "forward": way, "wrong": ["slow"]}
    found = machine.link_test("tun", told, 20_000)
    assert found.rtt_us is not None and (found.rtt_us.low, found.rtt_us.median, found.rtt_us.high) == (1, 2, 3)
    assert found.ways["forward"].asked == {"delay_ms": 10.0} and found.wrong == ["slow"]
    assert machine.link_test("veth", {"works": False, "wrong": ["no packets"]}, None).rtt_us is None


def test_the_clocks_of_this_machine_move_and_are_read() -> None:
    found = machine.clock()
    assert found.monotonic.smallest_ns > 0 and found.realtime.smallest_ns > 0
    assert found.anchor_error_ns.low <= found.anchor_error_ns.median <= found.anchor_error_ns.high


@pytest.mark.parametrize(
    ("failed", "busy", "foreign", "side"),
    [
        (True, 0.2, 0.0, "instrument"),
        (False, 0.99, 0.0, "server"),
        (False, 0.99, 0.4, "not known"),
        (False, 0.5, 0.0, "not known"),
        (False, None, 0.0, "not known"),
    ],
)
def test_which_side_bound_a_rate(failed: bool, busy: float | None, foreign: float, side: str) -> None:
    steps = [
        Try(rate_qps=1000, holds=True),
        Try(rate_qps=4000, holds=False, instrument_failed=not failed),
        Try(rate_qps=2000, holds=False, instrument_failed=failed),
    ]
    found = calibration.bound(LoadResult(model="ramp", capacity_qps=1000, steps=steps), busy, foreign)
    assert found.side == side and "at 2,000/s" in found.why, "the lowest rate that did not hold decides"


def test_no_side_bound_what_was_never_too_much() -> None:
    steps = [Try(rate_qps=1000, holds=True)]
    assert calibration.bound(LoadResult(model="ramp", capacity_qps=1000, steps=steps), 0.99, 0).side == "not known"


def test_the_busiest_window_of_a_cpu() -> None:
    times_ns = [100_000_000 * tick for tick in range(11)]
    # It rests for 90 % of the time, but for 400 ms in which it does for 10 %.
    rests = [90_000, 90_000, 90_000, 10_000, 10_000, 10_000, 10_000, 90_000, 90_000, 90_000]
    idle_us = [sum(rests[:tick]) for tick in range(11)]
    assert calibration.busiest_share(times_ns, idle_us) == pytest.approx(0.9)
    assert calibration.busiest_share(times_ns[:2], idle_us[:2]) is None, "shorter than a window"


def test_an_interface_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nics, "found", lambda: [nics.Nic("eth0", "virtio_net", None, 1, {})])
    measuring.check_nic("")
    measuring.check_nic("eth0")
    with pytest.raises(UsageError, match="eth7"):
        measuring.check_nic("eth7")
    (said,) = measuring._of_nic("eth0")
    assert said.grade == "note" and "nothing is measured through it" in said.says
    assert "--nic eth0 --other-end MACHINE:INTERFACE" in said.remedy


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("eth1", "rack-2", Path("m.toml")), "does not name a machine and an interface"),
        (("eth1", ":eth1", Path("m.toml")), "does not name a machine and an interface"),
        (("", "rack-2:eth1", Path("m.toml")), "without --nic"),
        (("eth1", "rack-2:eth1", None), "the address of the machine rack-2 is missing"),
        (("eth1", "", Path("m.toml")), "without --other-end"),
    ],
)
def test_half_a_path_is_refused(options: tuple[str, str, Path | None], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        through.wanted(*options)


def test_what_is_asked_of_the_floor_through_an_interface() -> None:
    assert through.wanted("eth1", "", None) is None
    found = through.wanted("eth1", "rack-2:eth1.5", Path("m.toml"))
    assert found is not None and found.label == "eth1 – rack-2:eth1.5"
    document = model.load(Path(measuring.__file__).with_name("floor.toml"), "quick", found.settings)
    server, generator = document.hosts["primary"], document.hosts["generator-1"]
    assert (server.server, server.machine, server.nic) == ("echo@engine", None, "eth1")
    assert (generator.machine, generator.nic, document.options["generators"]) == ("rack-2", "eth1.5", 1)
    assert document.title.endswith("through eth1 – rack-2:eth1.5")


def test_each_part_has_its_share_of_the_limit() -> None:
    assert measuring.shares(through_nic=False) == [0.0, 0.5, 0.7, 1.0]
    first, floor, capacity, last = measuring.shares(through_nic=True)
    assert 0 < first < floor < capacity < last == 1.0


@pytest.mark.parametrize("found", [certificate(), through_nic()], ids=["certificate", "certificate-through-nic"])
def test_a_terminal_shows_it_as_it_was(found: Certificate, request: pytest.FixtureRequest) -> None:
    shown = printed(page.terminal(found, Path("made")), 120)
    assert same(GOLDEN.parent / f"{request.node.callspec.id}.txt", shown)


def test_the_tables_of_the_page_are_as_they_were() -> None:
    found = page.tables(through_nic()) | {"short": page.short(through_nic())}
    assert same(GOLDEN.parent / "certificate-tables.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def test_the_charts_are_as_they_were() -> None:
    assert pictures_as_they_were("drawn/certificate", dict(certificate_charts.charts(through_nic())))


def test_an_instrument_that_was_never_late_has_no_mark() -> None:
    """Zero has no place on a logarithmic axis."""
    never, late = (
        floor("udp", rate, 61).model_copy(update={"lag_p50_us": of(lag)}) for rate, lag in ((2000, 0.0), (5000, 0.5))
    )
    drawn = certificate_charts.charts(certificate().model_copy(update={"floors": [never, late]}))["lag"]
    rows = [row for rows in drawn.to_dict(validate=False)["datasets"].values() for row in rows]
    assert {row["rate"] for row in rows if row["percentile"] == "p50"} == {5000}
    assert {row["rate"] for row in rows if row["percentile"] == "p99"} == {2000, 5000}
    nothing = {name: of(0.0) for name in ("lag_p50_us", "lag_p99_us", "lag_max_us")}
    in_time = certificate().model_copy(update={"floors": [never.model_copy(update=nothing)]})
    assert set(certificate_charts.charts(in_time)) == {"floor", "smallest"}


@pytest.mark.parametrize(
    ("percent", "low", "high", "text"),
    [
        (None, None, None, "none visible"),
        (42.0, None, 50.0, "42 %"),
        (10.0, 8.6, 10.6, "10 % [8.6..11 %]"),
        (60.0, 5.0, 900.0, "60 % [5 %..10 times]"),
        (1900.0, 900.0, 2900.0, "20 times [10..30 times]"),
    ],
)
def test_a_smallest_difference_has_its_ends(
    percent: float | None, low: float | None, high: float | None, text: str
) -> None:
    assert page.smallest(Smallest(repeats=5, percent=percent, low=low, high=high)) == text


@pytest.mark.parametrize(
    ("median", "trials", "new_connections", "transport", "row"),
    [
        (1000.0, 1, False, "udp", ["queries a second over udp", "1,000/s", "1"]),
        (1000.0, 2, False, "udp", ["queries a second over udp", "1,000/s [900..1,200]", "2"]),
        (None, 3, True, "dot", ["full handshakes a second over dot", "–", "3"]),
        (2500.0, 1, True, "tcp", ["new connections a second over tcp", "2,500/s", "1"]),
    ],
)
def test_a_highest_rate_has_its_range(
    median: float | None, trials: int, new_connections: bool, transport: str, row: list[str]
) -> None:
    qps = None if median is None else of(median, trials)
    found = Capacity(transport=transport, new_connections=new_connections, trials=trials, qps=qps)
    what, rate, _, counted = page._capacity(found)
    assert [what, rate, counted] == row


@pytest.mark.parametrize(("here", "text"), [(10.0, "6.00 µs more"), (1.5, "2.50 µs less"), (4.0, "0 s more")])
def test_what_an_interface_adds(here: float, text: str) -> None:
    assert page._more(of(here), of(4.0)) == text
