"""The report says what ran on other machines: a table each, and nothing of a run on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from elsewhere_data import clock, generators
from load_rows import Asked, load, log_normal
from synthetic import Plan, build

from dnsrig.report import elsewhere, page, terminal
from dnsrig.report.charts import timeline
from dnsrig.runs.run import Run

HOSTILE = "<script>alert(1)</script>"
NIC: dict[str, Any] = {
    "name": "eno1",
    "driver": "ice 6.12 firmware 4.50",
    "speed_mbit": 25_000,
    "numa_node": 0,
    "channels": {"rx": 0, "tx": 0, "other": 1, "combined": 4},
    "rings": {"rx": 2048, "tx": 2048},
    "rss_rings": 4,
    "irqs": {"120": "0", "121": "1", "122": "2", "123": "3"},
    "offloads": ["rx-checksum", "rx-gro", "tx-scatter-gather"],
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two repeats, with a generator on each of two machines."""
    found = Run.open(build(tmp_path / "run", Plan(servers=["knot@system"], zones=[100], repeats=2)))
    for trial in found.trials:
        load(trial, Asked(), log_normal(0.2, 0.4))
        generators(trial, "rack-1", "rack-2", generator_2={"busy_share": 0.7})
        trial.record.read_back["nics"] = {"generator-1": NIC, "generator-2": NIC}
    (variant,) = found.manifest.variants
    found.manifest.specs[variant.id] = found.trials[0].record.spec
    own = found.manifest.conditions
    other = {
        "kernel": {"release": "6.12.0"},
        "cpu_model": "AMD EPYC",
        "cpus": 64,
        "boot_id": "b",
        "virtualisation": "KVM",
    }
    own["other_machines"] = {"rack-1": own | other, "rack-2": own | other}
    return found


def test_machines_and_what_differs(run: Run) -> None:
    assert elsewhere.other_machines(run) == [
        {"machine": name, "hosts": host, "kernel": "release 6.12.0", "CPU": "AMD EPYC", "CPUs": "64"}
        for name, host in (("rack-1", "generator-1"), ("rack-2", "generator-2"))
    ]
    assert elsewhere.differing(run) == {
        "this machine": {"virtualisation": "–"},
        "rack-1": {"virtualisation": "KVM"},
        "rack-2": {"virtualisation": "KVM"},
    }


def test_clocks_over_all_trials(run: Run) -> None:
    first, second = run.trials
    second.record.machines["rack-1"].clock = clock(error_ns=40_000, drift_ppb=-50.0, realtime_offset_ns=-1_000)
    first.record.machines["rack-2"].clock = None
    second.record.machines["rack-2"].clock = None
    one, other = elsewhere.clocks(run)
    assert one == {
        "machine": "rack-1",
        "offset": "+3.700 s",
        "±": "22.0..40.0 µs",
        "drift, ppm": "-0.05..+0.18",
        "wall clock": "-1.00 µs..+2.78 µs",
        "wall clock ±": "21.0 µs",
        "comparisons": "3",
        "trials": "2",
    }
    assert (other["offset"], other["trials"]) == ("–", "0"), "it was not compared"


def test_generators_each_with_its_share(run: Run) -> None:
    assert [(row["host"], row["machine"], row["busiest thread"]) for row in elsewhere.generators(run)] == [
        ("generator-1", "rack-1", "30.0 %"),
        ("generator-2", "rack-2", "70.0 %"),
    ]


def test_interfaces_with_long_lists_folded(run: Run) -> None:
    first, second = elsewhere.interfaces(run)
    assert (first["hosts"], second["hosts"], first["queues"]) == (
        "generator-1",
        "generator-2",
        "combined 4; rings rx 2,048, tx 2,048",
    )
    assert first["interrupts"] == elsewhere.Folded("4 on CPUs 0-3", "120: CPU 0, 121: CPU 1, 122: CPU 2, 123: CPU 3")
    assert first["offloads"] == elsewhere.Folded("3 on", "rx-checksum, rx-gro, tx-scatter-gather")


def test_hosts_with_one_interface_stand_together(run: Run) -> None:
    for trial in run.trials:
        trial.record.spec.hosts["generator-2"].machine = "rack-1"
    assert [row["hosts"] for row in elsewhere.interfaces(run)] == ["generator-1, generator-2"]


def test_the_page_has_them_and_says_nothing_twice(run: Run) -> None:
    made = page.render(run, [], [])
    for heading in ("Hosts on other machines", "Clocks of other machines", "Generators", "Interfaces of hosts"):
        assert f"<h3>{heading}</h3>" in made
    for gone in ("other_machines.rack-1", "nics.generator-1", ">load-generator-1<"):
        assert gone not in made, "it has a table of its own"
    assert "machines.rack-1.load_average_1min" in made


def test_what_machines_say_is_untrusted(run: Run) -> None:
    run.manifest.conditions["other_machines"]["rack-1"] |= {"kernel": HOSTILE, "virtualisation": HOSTILE}
    for trial in run.trials:
        nic = NIC | {"driver": HOSTILE, "irqs": {HOSTILE: HOSTILE} | NIC["irqs"], "offloads": [HOSTILE] * 3}
        trial.record.read_back["nics"] = {"generator-1": nic}
    made = page.render(run, [], [])
    assert "<script" not in made and made.count("&lt;script&gt;") >= 7


def test_one_line_on_the_terminal(run: Run) -> None:
    line = "2 hosts on other machines (rack-1, rack-2); their clocks are known to ± 22.0 µs"
    assert elsewhere.summary(run) == line
    assert line in terminal.terminal_table(run, []).notes


def test_a_run_on_one_machine_has_nothing_of_it(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run"))
    assert elsewhere.summary(run) == "" and elsewhere.differing(run) == {}
    for rows in (elsewhere.other_machines, elsewhere.clocks, elsewhere.generators, elsewhere.interfaces):
        assert rows(run) == []
    assert "other machines</h3>" not in page.render(run, [], [])


def test_generators_are_one_line_over_time(run: Run) -> None:
    assert [*timeline._hosts(run.trials[0])] == ["secondary", "primary", "2 generators", "observer"]


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "+0 s"),
        (999_400_000, "+0.999 s"),
        (999_600_000, "+1.000 s"),
        (-59_999_000_000, "-59.999 s"),
        (60_000_000_000, "+0:01:00.000"),
        (-3_599_999_000_000, "-0:59:59.999"),
        (3_600_000_000_000, "+1:00:00.000"),
        (86_399_999_000_000, "+23:59:59.999"),
        (2 * 86_400_000_000_000, "+2 d 0:00:00.000"),
    ],
)
def test_an_offset_of_clocks_has_the_unit_that_fits(ns: int, text: str) -> None:
    assert elsewhere._ahead(ns) == text


def test_a_list_of_three_is_folded_away() -> None:
    assert elsewhere._folded("2 on", ["a", "b"]) == "a, b"
    assert elsewhere._folded("3 on", ["a", "b", "c"]) == elsewhere.Folded("3 on", "a, b, c")
    assert elsewhere._folded("0 on", []) == "–"


@pytest.mark.parametrize(("texts", "shown"), [([], "–"), (["1"], "1"), (["1", "1"], "1"), (["1", "2", "3"], "1..3")])
def test_a_range_has_its_ends(texts: list[str], shown: str) -> None:
    assert elsewhere._ends(texts) == shown


def test_what_is_not_known_of_an_interface_is_a_dash() -> None:
    assert set(elsewhere._interface({}).values()) == {"–"}
    known = {"speed_mbit": 1000, "duplex": "half", "queues_rx": 2, "queues_tx": 1, "rss_rings": 1}
    more = {"receive_packet_steering": "f", "irqs": {"1": "0"}, "offloads": ["rx-gro"], "numa_node": 0}
    assert elsewhere._interface(known | more) == {
        "interface": "–",
        "driver": "–",
        "speed": "1,000 Mbit/s, half duplex",
        "queues": "rx 2, tx 1",
        "RSS": "1 ring; RPS f",
        "NUMA node": "0",
        "interrupts": "1: CPU 0",
        "offloads": "rx-gro",
    }
    channels = elsewhere._interface(
        {"channels": {"rx": 0, "other": 1, "combined": 4}, "queues_rx": 4, "rings": {"rx": 512}}
    )
    assert channels["queues"] == "combined 4; rings rx 512"
