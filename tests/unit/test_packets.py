"""The kernel's counts tell where a query or an answer was lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from trial_data import SECOND, clean_trial, measured, series, use

from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs import packets
from dnsrig.runs.packets import Counts, Loss
from dnsrig.runs.trial import Trial

WHOLE = Counts(
    sent=1000,
    send_errors=0,
    sent_packets=900,  # the others left in packets with several queries (UDP GSO)
    sent_by_interface_packets=900,
    received_by_interface_packets=900,
    received=1000,
    received_full=0,
    answered=1000,
    answer_errors=0,
    answered_by_interface_packets=1000,
    sent_elsewhere_packets=0,
    returned_by_interface_packets=1000,
    returned=1000,
    returned_full=0,
)


def behind(received: int, **changed: int) -> Counts:
    """``received`` queries reached the server; all of them were answered, and all answers came back."""
    same = dict.fromkeys(
        ("answered", "answered_by_interface_packets", "returned_by_interface_packets", "returned"), received
    )
    return replace(WHOLE, **{"received": received, **same, **changed})


def test_nothing_is_lost_if_all_counts_agree() -> None:
    assert WHOLE.losses == []


def test_other_traffic_is_no_loss() -> None:
    """A server that asks its primary meanwhile sends and receives more, through another interface."""
    assert replace(WHOLE, received=1010, answered=1010, sent_elsewhere_packets=10).losses == []


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            behind(990, sent_packets=900, sent_by_interface_packets=890, received_by_interface_packets=890),
            Loss("generator", 10, "in the queue of the generator's interface"),
        ),
        (
            behind(
                990, send_errors=10, sent_packets=890, sent_by_interface_packets=890, received_by_interface_packets=890
            ),
            Loss("generator", 10, "in the queue of the generator's interface"),
        ),
        (
            behind(990, received_by_interface_packets=890),
            Loss("wire", 10, "between the interfaces, on the way to the server"),
        ),
        (behind(990), Loss("server", 10, "between the server's interface and its socket")),
        (behind(990, received_full=10), Loss("server", 10, "at the server's socket, whose buffer was full")),
        (
            replace(behind(990), received=1000),
            Loss("server", 10, "in the server, or in another program on its port, which did not answer"),
        ),
        (
            replace(behind(990), received=1000, answer_errors=10),
            Loss("server", 10, "in the queue of the server's interface"),
        ),
        (
            replace(behind(990), received=1000, answered=1000),
            Loss("server", 10, "in the queue of the server's interface"),
        ),
        (
            replace(WHOLE, returned_by_interface_packets=990, returned=990),
            Loss("wire", 10, "between the interfaces, on the way back"),
        ),
        (replace(WHOLE, returned=990), Loss("generator", 10, "between the generator's interface and its socket")),
        (
            replace(WHOLE, returned=990, returned_full=10),
            Loss("generator", 10, "at the generator's socket, whose buffer was full"),
        ),
    ],
)
def test_each_place_is_named(counts: Counts, expected: Loss) -> None:
    assert counts.losses == [expected]


def test_losses_in_two_places_are_told_apart() -> None:
    both = replace(behind(990, received_full=10), returned=980, returned_full=10)
    assert [(loss.where, loss.datagrams) for loss in both.losses] == [("server", 10), ("generator", 10)]


def watched(trial: Trial, **grown: int) -> None:
    """Counters that stood at 1,000 before the first query was due, and at the end of `measure` at 1,000 and what they
    grew by. Samples between and later than these do not count. Counters that are not named grew by nothing."""
    start_ns = measured(trial, 4)
    end_ns = start_ns + 4 * SECOND
    trial.record.instruments["load"] = {"model": "rate", "transport": "udp", "sent": 100, "start_ns": start_ns}
    names = [
        *(
            f"{host}__{family}__{name}"
            for host in ("observer", "secondary")
            for family in ("udp", "udp6")
            for name in UDP
        ),
        *(f"{pair}__{way}_packets" for pair in INTERFACES for way in ("tx", "rx")),
    ]
    others = {start_ns - packets.SWEEP_NS: 1_000, start_ns - packets.SWEEP_NS + 1: 5_000, end_ns - 1: 5_000}
    frames = [
        series(at_ns, **{name: [value] for name in names}) for at_ns, value in {**others, end_ns + 1: 9_000}.items()
    ]
    use(trial, pl.concat([*frames, series(end_ns, **{name: [1_000 + grown.get(name, 0)] for name in names})]))


UDP = ("in_datagrams", "out_datagrams", "rcvbuf_errors", "sndbuf_errors")
INTERFACES = ("observer__link_secondary", "secondary__link_observer", "secondary__link_primary")


def test_each_count_is_from_its_own_host(tmp_path: Path) -> None:
    """Each counter grew by another power of two, so that each sum tells what is in it."""
    trial = clean_trial(tmp_path / "run")
    watched(
        trial,
        observer__udp__sndbuf_errors=1,
        observer__udp6__sndbuf_errors=2,
        observer__udp__out_datagrams=4,
        observer__link_secondary__tx_packets=8,
        secondary__link_observer__rx_packets=16,
        secondary__udp__in_datagrams=32,
        secondary__udp6__in_datagrams=64,
        secondary__udp__rcvbuf_errors=128,
        secondary__udp__out_datagrams=256,
        secondary__udp__sndbuf_errors=512,
        secondary__link_observer__tx_packets=1024,
        secondary__link_primary__tx_packets=2048,
        observer__link_secondary__rx_packets=4096,
        observer__udp__in_datagrams=8192,
        observer__udp__rcvbuf_errors=16384,
    )
    assert packets.counts(trial) == Counts(100, 3, 4, 8, 16, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def test_without_a_counter_nothing_is_known(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    watched(trial)
    assert packets.counts(trial) == Counts(100, *[0] * 13)
    use(trial, trial.samples.filter(pl.col("metric") != "rcvbuf_errors"))
    assert packets.counts(trial) is None
    assert trial.measure is not None
    start_ns, end_ns = trial.measure.start.monotonic_ns, trial.measure.end.monotonic_ns
    for kept in (pl.col("time_ns") > start_ns - packets.SWEEP_NS, pl.col("time_ns") < end_ns):
        watched(trial)
        use(trial, trial.samples.filter(kept))
        assert packets.counts(trial) is None, "a sample before the first query, and one after the last answer"


@pytest.mark.parametrize(
    ("load", "role", "counted"),
    [
        ({"model": "rate", "transport": "udp"}, "secondary", True),
        ({"model": "closed", "transport": "udp"}, "secondary", True),
        ({"model": "stream", "transport": "udp"}, "secondary", False),
        ({"model": "rate", "transport": "tcp"}, "secondary", False),
        ({"model": "rate", "transport": "udp"}, "resolver", False),
        ({"model": "rate", "transport": "udp"}, "frontend", False),
    ],
)
def test_datagrams_are_counted_where_each_query_is_one(
    tmp_path: Path, load: dict[str, str], role: Any, counted: bool
) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.instruments["load"] = load
    trial.record.spec.hosts["secondary"].role = role
    assert packets.are_counted(trial) is counted
    far = PathSpec(delay_ms=1)
    trial.record.spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=far)]
    assert packets.are_counted(trial) is counted, "the path of zones is another one"
    trial.record.spec.links = [LinkSpec(ends=("observer", "secondary"), kind="tun", forward=far)]
    assert not packets.are_counted(trial)
