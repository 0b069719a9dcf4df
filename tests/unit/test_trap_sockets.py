"""Traps of far transfers: each provoked on made-up listings of sockets, and silent on clean ones.

Each is provoked for real in tests/integration/test_path_traps.py.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import socket_data
import synthetic
from socket_data import bulk, linked
from trial_data import clean_trial, judge

from dnsrig.rundir import PathSpec
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps
from dnsrig.traps.short_queue import is_short, wanted_packets

TRAPS = ("congestion-on-receiver", "receiver-options", "small-buffers", "short-queue")
WIDE = PathSpec(rate_mbit=20, delay_ms=150, limit_packets=5000)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def test_they_say_nothing_of_a_trial_without_a_path(trial: Trial) -> None:
    assert [all_traps()[trap].after(trial) for trap in TRAPS] == [None] * len(TRAPS)


def test_they_say_nothing_of_a_trial_that_was_our_error(trial: Trial) -> None:
    bulk(trial).record.spec.hosts["primary"].congestion = "cubic"
    trial.record.outcome = "error"
    assert [all_traps()[trap].after(trial) for trap in TRAPS] == [None] * len(TRAPS)


def test_all_are_clear_of_a_clean_flow(trial: Trial) -> None:
    bulk(trial).record.spec.hosts["primary"].congestion = "cubic"
    assert {trap: judge(trap, trial).verdict for trap in TRAPS} == dict.fromkeys(TRAPS, "clear")


def test_congestion_on_receiver(trial: Trial) -> None:
    bulk(trial, congestion="cubic").record.spec.hosts["client"].congestion = "bbr"
    found = judge("congestion-on-receiver", trial)
    assert found.verdict == "found"
    assert (found.evidence["asked_of_receiver"], found.evidence["used_by_sender"]) == ("bbr", "cubic")
    assert "hosts.primary.congestion" in found.remedy


def test_congestion_of_the_instruments_sockets_is_the_receivers_too(trial: Trial) -> None:
    bulk(trial, congestion="cubic").record.spec.options["congestion"] = "reno"
    assert judge("congestion-on-receiver", trial).evidence["asked_of_receiver"] == "reno"


@pytest.mark.parametrize("sender", ["cubic", None])
def test_the_same_on_both_sides_is_no_trap(trial: Trial, sender: str | None) -> None:
    hosts = bulk(trial, congestion="cubic").record.spec.hosts
    hosts["client"].congestion, hosts["primary"].congestion = "cubic", sender
    assert judge("congestion-on-receiver", trial).verdict == "clear"


def test_another_on_both_sides_is_none(trial: Trial) -> None:
    """The receiver's own says nothing where it is the sender's that was varied."""
    hosts = bulk(trial, congestion="bbr").record.spec.hosts
    hosts["primary"].congestion = "bbr"
    assert judge("congestion-on-receiver", trial).verdict == "clear"


def test_who_sent_cannot_be_told_without_sockets(trial: Trial) -> None:
    trial.record.spec.hosts["secondary"].congestion = "bbr"
    assert judge("congestion-on-receiver", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(("transport", "verdict"), [("tcp", "cannot-tell"), ("doq", None), ("udp", None)])
def test_queries_over_datagrams_have_no_sockets_of_tcp(trial: Trial, transport: str, verdict: str | None) -> None:
    trial.record.spec.hosts["secondary"].congestion = "cubic"
    trial.record.instruments["load"] = {"model": "rate", "transport": transport, "due": 1}
    found = all_traps()["congestion-on-receiver"].after(trial)
    assert (found.verdict if found else None) == verdict


@pytest.mark.parametrize("option", ["sacks", "timestamps", "window_scaling"])
def test_receiver_options(trial: Trial, option: str) -> None:
    sysctl = {"sacks": "tcp_sack", "timestamps": "tcp_timestamps", "window_scaling": "tcp_window_scaling"}[option]
    bulk(trial, **{option: False}).record.spec.hosts["client"].sysctls = {f"net.ipv4.{sysctl}": "0"}
    found = judge("receiver-options", trial)
    assert found.verdict == "found"
    assert found.evidence[f"agreed_{option}"] is False and found.evidence[f"net.ipv4.{sysctl}"] == "client"
    assert "The client had switched it off" in found.summary and f"net.ipv4.{sysctl} = 1" in found.remedy
    assert ("218 kB/s" in found.summary) == (option == "window_scaling")


def test_what_was_read_back_counts_for_more_than_what_was_asked(trial: Trial) -> None:
    bulk(trial, sacks=False).record.read_back["hosts"] = {"primary": {"sysctls": {"net.ipv4.tcp_sack": "0"}}}
    assert "The primary had switched it off" in judge("receiver-options", trial).summary
    trial.record.read_back = {}
    found = judge("receiver-options", trial)
    assert found.verdict == "found" and "switched it off" not in found.summary, "a firewall, perhaps"


def test_on_a_short_path_options_hardly_matter(trial: Trial) -> None:
    bulk(trial, sacks=False, rtt_ms=0.2, min_rtt_ms=0.1)
    assert judge("receiver-options", trial).verdict == "clear"
    assert all_traps()["small-buffers"].after(trial) is None


@pytest.mark.parametrize(
    ("limit", "host", "sysctl"),
    [("receive_window", "client", "tcp_rmem"), ("send_buffer", "primary", "tcp_wmem")],
)
def test_small_buffers(trial: Trial, limit: str, host: str, sysctl: str) -> None:
    bulk(trial, forward=WIDE, limited={limit: 0.9}, cwnd=44, kb_per_s=210)
    found = judge("small-buffers", trial)
    assert found.verdict == "found"
    assert found.evidence[f"limited_by_{limit}_percent"] == pytest.approx(90, abs=1)
    assert found.evidence["in_flight_max_bytes"] == 44 * socket_data.MSS_BYTES
    assert found.evidence["bandwidth_delay_bytes"] == 750_000, "20 Mbit/s over 300 ms"
    assert f"net.ipv4.{sysctl} on the {host}" in found.remedy
    trial.record.spec.hosts[trial.subject].role = "resolver"
    assert all_traps()["small-buffers"].after(trial) is None, "single messages"


@pytest.mark.parametrize(
    ("rmem", "number"),
    [
        (
            "4096 131072 67108864",
            "second number",
        ),  # as it was seen over 300 ms and 10 % loss: it grew for tens of seconds
        ("4096 65536 131072", "third number"),  # 64 kB are all that it allows
        ("4096 65536 1000000", "second and the third number"),  # it had not grown, and would not have been enough
        ("", "third number"),
    ],
)
def test_which_number_of_the_receive_buffer(trial: Trial, rmem: str, number: str) -> None:
    bulk(trial, forward=WIDE, limited={"receive_window": 0.4}, cwnd=44)
    trial.record.spec.hosts["client"].sysctls = {"net.ipv4.tcp_rmem": rmem} if rmem else {}
    trial.record.read_back = {}
    found = judge("small-buffers", trial)
    assert found.verdict == "found"
    assert f"Raise the {number} of net.ipv4.tcp_rmem on the client" in found.remedy
    assert found.evidence["buffer_largest_bytes"] == (int(rmem.split()[2]) if rmem else None)


@pytest.mark.parametrize(
    ("buffers", "limit", "own"),
    [
        ((131_074, 0), "send_buffer", 131_074),  # as Knot DNS has it by default
        ((16_384, 0), "send_buffer", None),  # as it began
        ((4_194_304, 0), "send_buffer", None),  # grown to the end
        ((0, 0), "send_buffer", None),  # a run of an earlier version
        ((131_074, 0), "receive_window", None),  # it is not what binds
        ((0, 300_000), "receive_window", 300_000),
        ((0, 131_072), "receive_window", None),
    ],
)
def test_a_buffer_that_the_server_set_itself(
    trial: Trial, buffers: tuple[int, int], limit: str, own: int | None
) -> None:
    bulk(trial, forward=WIDE, limited={limit: 0.9}, cwnd=44, buffers=buffers)
    trial.record.read_back = {}
    hosts = trial.record.spec.hosts
    hosts["primary"].sysctls = {"net.ipv4.tcp_wmem": "4096 16384 4194304"}
    hosts["client"].sysctls = {"net.ipv4.tcp_rmem": "4096 131072 6291456"}
    found = judge("small-buffers", trial)
    assert found.evidence["buffer_set_bytes"] == own
    assert ("itself" in found.remedy) == (own is not None)
    assert own is None or f'"4096 {own} …"' in found.remedy


def test_a_buffer_that_was_seen_for_less_than_a_second_may_grow_yet(trial: Trial) -> None:
    bulk(trial, forward=WIDE, seconds=0.8, limited={"send_buffer": 0.9}, cwnd=44, buffers=(131_074, 0))
    assert judge("small-buffers", trial).evidence["buffer_set_bytes"] is None


def test_a_send_buffer_grows_with_the_window(trial: Trial) -> None:
    """So there the first size is not what decides, unless the server sets one."""
    bulk(trial, forward=WIDE, limited={"send_buffer": 0.9}, cwnd=44)
    trial.record.read_back = {}
    trial.record.spec.hosts["primary"].sysctls = {"net.ipv4.tcp_wmem": "4096 16384 4194304"}
    assert "Raise the third number of net.ipv4.tcp_wmem on the primary" in judge("small-buffers", trial).remedy


@pytest.mark.parametrize(
    ("wmem", "under_way", "verdict"),
    [
        ("4096 16384 65536", 57, "found"),  # as it was seen over 100 ms: the kernel counted nothing
        ("4096 16384 4194304", 57, "clear"),  # the application writes no more
        ("4096 16384 65536", 160, "clear"),  # the window is full
        ("4096 16384 65536", None, "clear"),  # more is written than the window takes
        (None, 57, "clear"),
    ],
)
def test_a_full_send_buffer_that_the_kernel_does_not_count(
    trial: Trial, wmem: str | None, under_way: int | None, verdict: str
) -> None:
    bulk(trial, forward=WIDE, cwnd=160, under_way=under_way)
    trial.record.spec.hosts["primary"].sysctls = {"net.ipv4.tcp_wmem": wmem} if wmem else {}
    trial.record.read_back = {}
    found = judge("small-buffers", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["limited_by_send_buffer_percent"] == 100 and "tcp_wmem" in found.remedy


@pytest.mark.parametrize(("share", "unread"), [(0.1, 0), (0.9, 60_000)])
def test_a_buffer_that_seldom_binds_or_a_reader_that_is_slow_is_none(trial: Trial, share: float, unread: int) -> None:
    bulk(trial, limited={"receive_window": share}, cwnd=44, unread_bytes=unread)
    assert judge("small-buffers", trial).verdict == "clear"


def test_a_buffer_that_fills_the_path_is_large_enough(trial: Trial) -> None:
    """More would only wait in the queue before the bottleneck."""
    bulk(trial, forward=WIDE, limited={"receive_window": 0.9}, cwnd=519)
    assert judge("small-buffers", trial).verdict == "clear"
    bulk(trial, forward=WIDE.model_copy(update={"rate_mbit": None}), limited={"receive_window": 0.9}, cwnd=519)
    found = judge("small-buffers", trial)
    assert found.verdict == "found" and found.evidence["bandwidth_delay_bytes"] is None, "the path has no end"


def test_an_old_kernel_does_not_count_what_held_it_back(trial: Trial) -> None:
    bulk(trial)
    trial.__dict__["sockets"] = trial.sockets.with_columns(busy_us=trial.sockets["busy_us"] * 0)
    assert judge("small-buffers", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("path", "packets", "short"),
    [
        (PathSpec(rate_mbit=20, delay_ms=150, limit_packets=250), 250, False),
        (PathSpec(rate_mbit=20, delay_ms=150, limit_packets=249), 250, True),
        (PathSpec(rate_mbit=20, delay_ms=125, jitter_ms=50, limit_packets=291), 292, True),
        (PathSpec(delay_ms=150, limit_packets=100_000), None, True),
        (PathSpec(rate_mbit=20, limit_packets=1), 0, False),
    ],
)
def test_how_long_a_queue_has_to_be(path: PathSpec, packets: int | None, short: bool) -> None:
    assert (wanted_packets(path), is_short(path)) == (packets, short)


def test_short_queue(trial: Trial) -> None:
    bulk(trial, forward=PathSpec(rate_mbit=20, delay_ms=150, limit_packets=50))
    trial.record.instruments["link"] = linked(overflowed=123)
    found = judge("short-queue", trial)
    assert found.verdict == "found"
    assert (found.evidence["overflowed"], found.evidence["bandwidth_delay_packets"]) == (123, 250)
    assert "path.limit_packets to 500" in found.remedy
    trial.record.instruments["link"] = linked(overflowed=0)
    assert judge("short-queue", trial).verdict == "clear", "short, but it was never full"
    del trial.record.instruments["link"]
    assert judge("short-queue", trial).verdict == "cannot-tell", "netem does not tell them from what was lost"


@pytest.mark.parametrize(
    ("loss_percent", "dropped", "verdict"), [(0, 12, "found"), (0, 0, "clear"), (1, 12, "cannot-tell")]
)
def test_netem_counts_all_drops_together(trial: Trial, loss_percent: float, dropped: int, verdict: str) -> None:
    bulk(trial, forward=PathSpec(rate_mbit=20, delay_ms=150, limit_packets=50, loss_percent=loss_percent))
    nothing = {"delivered_packets": 1000, "delivered_bytes": 10**6, "queue_packets": 0}
    trial.record.instruments["link"] = {
        "forward": {**nothing, "dropped": dropped},
        "reverse": {**nothing, "dropped": 0},
    }
    found = judge("short-queue", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert (found.evidence["overflowed"], found.evidence["packets"]) == (12, 1012)


def test_a_queue_that_is_full_as_the_path_is_is_none(trial: Trial) -> None:
    bulk(trial, forward=WIDE)
    trial.record.instruments["link"] = linked(overflowed=5000)
    assert judge("short-queue", trial).verdict == "clear"


def test_without_a_rate_nothing_may_overflow(trial: Trial) -> None:
    bulk(trial, forward=PathSpec(delay_ms=150, limit_packets=100))
    trial.record.instruments = {"link-primary-client": linked(overflowed=7)}
    found = judge("short-queue", trial)
    assert found.verdict == "found" and found.evidence["limit_carries_mbit"] == 8


def test_what_fills_a_path() -> None:
    assert sockets.in_flight_bytes(PathSpec(rate_mbit=20), 300) == 750_000
    assert sockets.in_flight_bytes(PathSpec(), 300) is None


@pytest.mark.parametrize(("values", "grown"), [([], 0), ([7], 7), ([7, 9], 2), ([7, 8, 12], 5)])
def test_a_counter_of_a_socket_grows_from_nothing_if_it_is_new(values: list[int], grown: int) -> None:
    assert sockets.growth(pl.DataFrame({"counted": values}, schema={"counted": pl.Int64}), "counted") == grown


def test_the_host_of_an_address(trial: Trial) -> None:
    trial.record.spec.hosts["secondary"].source_addresses = ["2001:2::7"]
    cases = {"198.18.0.1:53": "primary", "198.18.0.2:4": "secondary", "[2001:2::7]:53": "secondary", "192.0.2.1:53": ""}
    assert {address: sockets.host_of(trial, address) for address in cases} == cases


@pytest.mark.parametrize(
    ("advmss", "sender_clamp", "receiver_clamp", "mss"),
    [
        (None, None, None, None),
        (1000, None, None, 1000),
        (None, 900, None, 900),
        (None, None, 800, 800),
        (1000, 900, 1200, 900),
    ],
)
def test_the_size_of_segments_that_both_ends_agree_on(
    trial: Trial, advmss: int | None, sender_clamp: int | None, receiver_clamp: int | None, mss: int | None
) -> None:
    primary, secondary = (trial.record.spec.hosts[name] for name in ("primary", "secondary"))
    primary.mss_clamp_bytes, secondary.mss_clamp_bytes, secondary.advmss_bytes = sender_clamp, receiver_clamp, advmss
    primary.advmss_bytes = 500  # what it asks for itself concerns the other direction
    assert sockets.agreed_mss(trial, "primary", "secondary") == mss


def test_a_sysctl_is_as_read_back_or_as_asked_for(trial: Trial) -> None:
    host = trial.record.spec.hosts["secondary"]
    host.sysctls = {"a": "1", "b": "2"}
    trial.record.read_back["hosts"]["secondary"]["sysctls"] = {"a": " 3 "}
    assert [sockets.sysctl_of(trial, "secondary", name) for name in "abc"] == ["3", "2", None]
    assert sockets.sysctl_of(trial, "nobody", "a") is None
