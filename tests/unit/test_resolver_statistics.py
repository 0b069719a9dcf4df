"""What resolvers count, read as each of them wrote it, and the metrics of it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placement_data import placed
from trial_data import SECOND, clean_trial

from dnsrig.metrics import all_metrics
from dnsrig.procedures.parts.resolver_statistics import ask
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.servers import all_drivers
from dnsrig.servers.resolving import NAMES, Channel, nested, of_lines

GOLDEN = Path(__file__).parent / "golden/statistics"
CHANNELS = {kind: server.as_resolver.statistics for kind, server in all_drivers().items() if server.as_resolver}
AS_WRITTEN = {
    "bind": (5, 1, 4, 26, 0, 14, 2),
    "knot-resolver": (5, 2, 10, 18, 0, None, None),
    "powerdns-recursor": (6, 2, 4, 14, 0, 4, 1),
    "unbound": (5, 1, 4, 26, None, 12, 1),
}
"""By hand, from the files; in the order of the names."""


@pytest.mark.parametrize("kind", CHANNELS)
def test_each_is_read_as_it_was_written(kind: str) -> None:
    read = CHANNELS[kind].read((GOLDEN / kind).read_bytes())
    wanted = {name: value for name, value in zip(NAMES, AS_WRITTEN[kind], strict=True) if value is not None}
    assert read == wanted


@pytest.mark.parametrize("kind", CHANNELS)
@given(junk=st.binary(max_size=300), at=st.floats(0, 1), cut=st.floats(0, 1))
def test_no_answer_makes_it_fail(kind: str, junk: bytes, at: float, cut: float) -> None:
    whole = (GOLDEN / kind).read_bytes()
    place, end = int(at * len(whole)), int(cut * len(whole))
    for answer in (junk, whole[:end], whole[:place] + junk + whole[place + len(junk) :]):
        found = CHANNELS[kind].read(answer)
        assert found.keys() <= NAMES.keys() and all(abs(value) < 1e20 for value in found.values())


def test_numbers_that_are_none() -> None:
    assert of_lines(b"a=1e400\nb=nan\nc=-3\n=\nd\ne=0x10\nf= 7 \n", "=") == {"c": -3.0, "f": 7.0}
    seen = {"a": {"b": 10**400, "c": float("inf"), "d": "7", "e": True}}
    assert [nested(seen, "a", name) for name in "bcdef"] == [0, 0, 0, 1, 0] and nested([], "a") == 0
    for answer in (b"\r\n\r\n" + b"[" * 100_000, b'{"stats":' * 20_000):
        assert all(channel.read(answer) == {} for channel in CHANNELS.values())


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dnsrig.servers.resolving.ANSWER_LIMIT_S", 0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        Channel(b"now", lambda answer: {}).ask(ours)


def test_the_folder_of_a_socket_may_have_a_long_name(tmp_path: Path) -> None:
    place = placed(tmp_path / ("long" * 30), "unbound", "resolver")
    place.state.rmdir()
    short = tmp_path / "s"
    short.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(short / CHANNELS["unbound"].socket))
        listening.listen()
        short.rename(place.state)

        def answer() -> None:
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.recv(100) == CHANNELS["unbound"].request
                accepted.sendall((GOLDEN / "unbound").read_bytes())

        thread = threading.Thread(target=answer)
        thread.start()
        assert ask(CHANNELS["unbound"], place, "")["client_queries"] == 5
        thread.join()


def test_metrics_are_of_what_it_counted_while_it_was_measured(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path)
    metrics = all_metrics()
    names = ("cache_hits_percent", "upstream_a_query", "upstream_timeouts_percent", "validations_per_s")
    assert [metrics[name].compute(trial) for name in names] == [None] * 4
    before = dict.fromkeys(NAMES, 7.0)
    grown = {"client_queries": 100, "cache_hits": 90, "cache_misses": 10, "upstream_queries": 13, "validations": 20}
    after = {name: value + grown.get(name, 0) for name, value in before.items()}
    rows = [(at * SECOND, name, value) for at, told in ((1, before), (5, after)) for name, value in told.items()]
    frame = pl.DataFrame(rows, schema=dict(STATISTICS.schema), orient="row")
    frame.write_ipc_stream(trial.directory / STATISTICS.name)
    assert [metrics[name].compute(trial) for name in names] == [90.0, 0.13, 0.0, 5.0]
    # Started anew: its counters begin at 0 again.
    frame.with_columns(value=pl.lit(100.0) - pl.col("value")).write_ipc_stream(trial.directory / STATISTICS.name)
    assert metrics["cache_hits_percent"].compute(trial) is None
