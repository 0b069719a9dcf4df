"""The instrument `transfer`: its arguments, from the options of a procedure, and the meaning of its summary. Without
I/O."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dnsrig.procedures import Result
from dnsrig.procedures.parts import validity
from dnsrig.rundir import HostSpec, Scalar, TransferSpec
from dnsrig.servers import keys
from dnsrig.servers.keys import TransferKeys
from dnsrig.text import digits

Options = Mapping[str, Scalar]

POLICIES = ("one", "reused", "pipelined")
CLOSES = ("fin", "rst")
SOA_FIRST = ("none", "udp", "same")
VERIFICATIONS = ("none", "ca", "pin")
QUIC_CONGESTIONS = ("cubic", "newreno", "bbr")
OPTIONS: dict[str, Scalar] = {
    "policy": "pipelined",
    "window": 100,
    "connections": 1,
    "close": "fin",
    "soa": "none",
    "secondaries": 1,
    "resumption": True,
    "verify": "ca",
    "ixfr_serial": 0,
    "quickack": False,
    "nagle": False,
    "congestion": "",
    "quic_congestion": "cubic",
    "retries": 3,
    "retry_after_s": 1.0,
    "timeout_s": 10.0,
    "threads": 1,
}
"""Options of all procedures in which the instrument takes zones; `transfer-load` describes them."""

CHOICES = {
    "policy": POLICIES,
    "close": CLOSES,
    "soa": SOA_FIRST,
    "verify": VERIFICATIONS,
    "quic_congestion": QUIC_CONGESTIONS,
}


def policy(options: Options) -> list[str]:
    """Arguments for the order, the connections, and zones that fail."""
    words = [
        f"--policy={options['policy']}",
        f"--window={options['window']}",
        f"--connections={options['connections']}",
        f"--close={options['close']}",
        f"--soa={options['soa']}",
        f"--retries={options['retries']}",
        f"--retry-after={float(options['retry_after_s']):g}s",
        f"--timeout={float(options['timeout_s']):g}s",
        f"--threads={options['threads']}",
    ]
    if serial := options["ixfr_serial"]:
        words.append(f"--ixfr={serial}")
    return [*words, *_socket(options)]


def _socket(options: Options) -> list[str]:
    words = [f"--{name}" for name in ("quickack", "nagle") if options[name]]
    return [*words, f"--congestion={options['congestion']}"] if options["congestion"] else words


def sources(options: Options, host: HostSpec) -> list[str]:
    """Arguments for the source addresses: secondaries use the addresses of ``host`` in turn, or one each if they get
    NOTIFYs."""
    if host.notified:
        first, last = host.source_addresses[0], host.source_addresses[-1]
        return [f"--secondaries={len(host.source_addresses)}", f"--source={first}-{last}"]
    words = [f"--secondaries={options['secondaries']}"] if options["secondaries"] != 1 else []
    more = host.source_addresses
    return [*words, *(f"--source={address}" for address in (host.address, *more))] if more else words


def transport(options: Options, transfer: TransferSpec, made: TransferKeys, certificate: Path | None) -> list[str]:
    """Arguments for TCP, XoT (RFC 9103) or XoQ (RFC 9250), and for the TSIG key (RFC 8945).

    ``certificate``: file with the primary's certificate, which is its own CA; only with TLS.
    """
    words = [f"--transport={transfer.carrier}"]
    if transfer.tsig:
        words.append(f"--tsig={keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{made.tsig_secret}")
    if transfer.quic:
        words.append(f"--quic-congestion={options['quic_congestion']}")
    if not transfer.tls:
        return words
    words.append(f"--verify={options['verify']}")
    if options["verify"] == "ca":
        words += [f"--ca={certificate}", f"--server-name={keys.TLS_NAME}"]
    if options["verify"] == "pin":
        words.append(f"--pin={made.public_key_pin}")
    return words if options["resumption"] else [*words, "--no-resumption"]


def concluded(summary: Mapping[str, Any], *, zones: int, limit_s: float) -> Result:
    """Result of a trial from the ``summary`` of `transfer`. ``zones``: number of zones to transfer, over all
    secondaries.

    With `repeat`, more than ``zones`` arrive; a zone that never did is among the failures.
    """
    arrived = summary["done"] + summary["up_to_date"]
    failures = outcomes(summary)
    if not arrived and not summary.get("unfinished"):
        return Result(
            "server-failed", f"none of {zones:,} zones was transferred" + (f": {failures}" if failures else "")
        )
    if reason := validity.why_transfer_did_not(summary):
        return Result("invalid", reason)
    if arrived < zones or summary["failed"]:
        after_s = summary["elapsed_ns"] / 1e9 if failures else limit_s
        return Result(
            "timeout",
            f"{arrived:,} of {zones:,} zones after {digits(after_s)} s" + (f"; {failures}" if failures else ""),
        )
    return Result("done")


def outcomes(summary: Mapping[str, Any]) -> str:
    """Outcomes of zones that did not arrive, the most frequent first: ``2,813 servfail, 2 cut``."""
    bad = {name: count for name, count in summary["outcomes"].items() if count and name not in ("done", "up-to-date")}
    ranked = sorted(bad.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ranked)
