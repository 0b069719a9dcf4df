"""What follows from the spec of a trial: its server, its hosts by what they do, and the names of its series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trial_data import clean_trial

from dnsrig.rundir import DatasetSpec, HostSpec, TransferSpec, TrialSpec
from dnsrig.runs.load_result import ClassResult, Connections, LoadResult, QuicCounts, Try


@pytest.fixture
def spec(tmp_path: Path) -> TrialSpec:
    """A secondary under test, with a primary and an observer."""
    return clean_trial(tmp_path / "run").record.spec


def host(**fields: Any) -> HostSpec:
    return HostSpec(address="198.18.0.9", cpus=[0], **fields)


def test_the_server_under_test_is_the_subject(spec: TrialSpec) -> None:
    assert spec.subject == "secondary" and spec.server is spec.hosts["secondary"].server is not None
    spec.hosts["secondary"].under_test, spec.hosts["primary"].under_test = False, True
    assert spec.subject == "primary"
    spec.hosts["primary"].under_test = False
    assert spec.subject == "secondary", "without a mark"
    del spec.hosts["secondary"]
    assert spec.server is None and not spec.runs_already


def test_a_server_on_the_network_of_the_machine_runs_already(spec: TrialSpec) -> None:
    assert not spec.runs_already
    spec.hosts["primary"].network = "machine"
    assert not spec.runs_already
    spec.hosts["secondary"].network = "machine"
    assert spec.runs_already


def test_primaries_are_the_others_with_that_role(spec: TrialSpec) -> None:
    assert (spec.primaries, spec.world) == (["primary"], None)
    spec.hosts["secondary"].role = "primary"
    assert spec.primaries == ["primary"]
    spec.hosts |= {"primary2": host(role="primary"), "internet": host(role="world")}
    assert (spec.primaries, spec.world) == (["primary", "primary2"], "internet")


@pytest.mark.parametrize(
    ("asked", "transfers", "transport"),
    [
        (None, "tcp", "tcp"),
        (None, "tcp+tsig", "tcp"),
        (None, "xot", "dot"),
        (None, "xot+tsig", "dot"),
        (None, "xoq", "doq"),
        ("", "xot", "dot"),
        ("udp", "xot", "udp"),
        ("as-captured", "tcp", "udp"),
        ("doh", "tcp", "doh"),
    ],
)
def test_the_transport_of_queries_or_of_transfers(
    spec: TrialSpec, asked: str | None, transfers: Any, transport: str
) -> None:
    spec.options = {} if asked is None else {"transport": asked}
    spec.transfer = TransferSpec(transport=transfers)
    assert spec.transport == transport


def test_hosts_that_ask_are_the_generators(spec: TrialSpec) -> None:
    assert (spec.generators, spec.instrument_hosts) == (["observer"], ["observer"])
    spec.hosts |= {"one": host(asks=True), "two": host(asks=True), "three": host()}
    assert (spec.generators, spec.instrument_hosts) == (["one", "two"], ["observer", "one", "two"])
    del spec.hosts["observer"]
    assert spec.instrument_hosts == ["one", "two"]


def test_series_are_named_after_machines_and_interfaces(spec: TrialSpec) -> None:
    spec.hosts["far"] = host(machine="rack-1", nic="eth1")
    spec.hosts["near"] = host(machine="rack-1", nic="eth2")
    assert (spec.whole_machine("primary"), spec.whole_machine("far")) == ("machine", "machine@rack-1")
    assert spec.interface("primary", "secondary") == "link:secondary"
    assert spec.interface("far", "near") == "link:near"
    assert spec.interface("far", "primary") == "link:eth1"
    assert spec.interface("far", "elsewhere") == "link:elsewhere"


def test_versions_of_the_zones_are_in_their_order(spec: TrialSpec) -> None:
    first, second, third = (
        DatasetSpec(kind="zones", key=key, zones=1, records=4, serial=serial) for serial, key in enumerate("abc", 1)
    )
    spec.dataset = first
    assert spec.versions == [first]
    spec.next_dataset = second
    assert spec.versions == [first, second]
    spec.further_datasets = [third]
    assert spec.versions == [first, second, third]


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (LoadResult(), {"threads": 1}),
        (Try(rate_qps=0, holds=False), {}),
        (QuicCounts(), {}),
        (Connections(), {}),
        (ClassResult(), {}),
    ],
)
def test_a_generator_that_says_nothing_counted_nothing(made: Any, counts: dict[str, int]) -> None:
    told = made.model_dump()
    assert {name: value for name, value in told.items() if isinstance(value, int | float) and value} == counts


@pytest.mark.parametrize(
    ("said", "answered_qps", "highest_qps", "held_all"),
    [
        ({"model": "rate", "sent": 9, "answered": 8}, 4, None, False),
        ({"model": "closed", "sent": 9, "answered": 8}, 4, 4, False),
        ({"model": "stream", "sent": 9, "answered": 8}, 4, None, False),
        ({"model": "rate", "sent": 0, "answered": 8}, None, None, False),
        ({"model": "rate", "sent": 9, "answered": 8, "end_ns": 1_000_000_000}, None, None, False),
        ({"sent": 9, "answered": 8}, None, None, False),
        ({"model": "ramp", "capacity_qps": 7.0}, None, 7, False),
        ({"model": "ramp", "capacity_qps": 7.0, "capacity_is_lower_bound": True}, None, 7, False),
        ({"model": "ramp", "capacity_qps": 7.0, "capacity_is_lower_bound": True, "steps": [7]}, None, 7, True),
        ({"model": "ramp", "capacity_qps": 7.0, "capacity_is_lower_bound": True, "steps": [7, 8]}, None, 7, False),
        ({"model": "ramp", "capacity_qps": 7.0, "steps": [7]}, None, 7, False),
        ({"model": "ramp", "capacity_is_lower_bound": True, "steps": [7]}, None, None, False),
    ],
)
def test_rates_of_a_load(
    said: dict[str, Any], answered_qps: float | None, highest_qps: float | None, held_all: bool
) -> None:
    """Two seconds, from the first to the third."""
    steps = [{"rate_qps": rate, "holds": True} for rate in said.get("steps", [])]
    times = {"start_ns": 1_000_000_000, "end_ns": 3_000_000_000}
    found = LoadResult.model_validate({**times, **said, "steps": steps})
    assert (found.answered_qps, found.highest_qps, found.held_all_rates) == (answered_qps, highest_qps, held_all)
    assert found.ran == ("model" in said) and found.has_latencies == (said.get("model") in ("rate", "closed", "stream"))
