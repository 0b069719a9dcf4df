"""A capture by tcpdump on the host of a real resolver has what its clients ask and what it asks itself: which is which,
and what is said of a replay of both."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_server
from resolver_host import RESOLVER, between_clients_and_world
from test_replay import play
from test_replay_how_to import PACKETS_WAIT_S, running, tcpdump_as_installed
from test_traps_provoked import finding
from test_world_from_stream import ASKED, CLIENTS_FROM, INTERNET, engine, write_capture

from dnsrig.runs.trial import Trial

pytestmark = pytest.mark.servers

EXPERIMENT = """
title = "A capture on a resolver's host"
question = "Whose queries are these?"
procedure = "replay"
limit_s = 60
dataset = { kind = "tiny-zones", zones = 3 }
options = { serve_as = "resolver", duration_s = 0, timeout_s = 0.5 }
hosts.primary.server = "nsd@forky"
hosts.resolver.server = "unbound@forky"

[stream]
kind = "capture"
file = "FILE"
server = "SERVER"
"""


def captured(folder: Path) -> Path:
    """Clients ask an Unbound, and it asks a simulated Internet that has all their names."""
    asked, stream, both = folder / "asked.pcap", folder / "asked.stream", folder / "both.pcap"
    write_capture(asked)
    engine("replay", "prepare", str(asked), "--out", str(stream))
    world = world_server.make(folder / "world.toml", "--zones", "100", "--from-stream", str(stream))
    tcpdump_as_installed(folder)
    with (
        between_clients_and_world(folder, "unbound", world, INTERNET, CLIENTS_FROM) as (internet, ours),
        running(ours, f"tcpdump -i any -s 0 -Z root -w {both} 'port 53'", folder) as tcpdump,
    ):
        assert tcpdump.stderr is not None
        assert any("listening on" in words for words in tcpdump.stderr)
        play(internet.namespace, stream, "--server", RESOLVER, "--clients-from", CLIENTS_FROM)
        time.sleep(PACKETS_WAIT_S)
        tcpdump.send_signal(signal.SIGINT)
        tcpdump.communicate(timeout=60)
    return both


def messages(summary: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = summary["ledger"]["messages"]
    return found


@pytest.mark.full
def test_what_a_resolver_asks_is_no_query_of_its_clients(measure: Callable[..., Trial], tmp_path: Path) -> None:
    both, stream = captured(tmp_path), tmp_path / "clients.stream"
    # Nobody names the server.
    found = engine("replay", "prepare", str(both), "--out", str(stream))
    # Over IPv6 it asks from another address than the one that clients ask.
    upstream = [seen for seen in found["servers_seen"] if seen["address"] != RESOLVER and "." in seen["address"]]
    assert (found["servers"], messages(found)["kept"], messages(found)["from_servers"]) == ([RESOLVER], len(ASKED), 0)
    assert messages(found)["upstream"] >= sum(seen["queries"] for seen in upstream) > 0
    assert engine("replay", "describe", str(stream))["recursion_desired"] == len(ASKED)

    def replayed(name: str, *servers: str) -> Trial:
        experiment = tmp_path / f"{name}.toml"
        experiment.write_text(EXPERIMENT.replace("FILE", str(both)).replace("SERVER", ",".join(servers)))
        return measure(experiment=str(experiment))

    assert finding("both-sides-captured", replayed("clients", RESOLVER)).verdict == "clear"
    # Somebody names one that the resolver asks as well.
    told = finding("both-sides-captured", replayed("both", RESOLVER, upstream[0]["address"]))
    assert told.verdict == "found", told
    # The resolver's address and RD tell the same queries.
    assert told.evidence["from_servers"] == told.evidence["without_recursion_desired"] == upstream[0]["queries"]
    assert told.evidence["queries"] == len(ASKED) + upstream[0]["queries"]
