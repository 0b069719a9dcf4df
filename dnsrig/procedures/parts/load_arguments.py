"""Arguments of the instrument `load`, from the options of a procedure. This module has no I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from dnsrig import query_files
from dnsrig.datasets import QUERIES_FILE
from dnsrig.errors import UsageError
from dnsrig.rundir import QueriesSpec, Scalar

Options = Mapping[str, Scalar]

OPTIONS: dict[str, Scalar] = {
    "transport": "udp",
    "doh_path": "/dns-query{?dns}",
    "clients": 16,
    "timeout_s": 1.0,
    "queries_per_connection": 0,
    "resumption": True,
    "early_data": False,
    "doh_method": "post",
    "proxy_protocol": False,
    "queried_share": 1.0,
    "popularity": "uniform",
    "missing_share": 0.0,
    "edns_bytes": 1232,
    "query_rows": 0,
    "ramp_start_qps": 2000.0,
    "ramp_most_qps": 400_000.0,
    "ramp_step_s": 1.0,
    "ramp_loss_percent": 0.1,
    "ramp_latency_ms": 10.0,
    "ramp_percentile": 99.0,
    "ramp_repeats": 1,
    "ramp_precision_percent": 5.0,
}
"""Options of all procedures that send queries to a server; `latency` describes them."""

RANGES = {"timeout_s": (0.001, 60)}
"""`load` does not wait longer."""
CHOICES = {"transport": ("udp", "tcp", "dot", "doh", "doq"), "doh_method": ("get", "post")}
ENCRYPTED = ("dot", "doh", "doq")
"""Transports whose connections begin with a handshake of TLS."""


def check(options: Options) -> None:
    """Raise UsageError on options that `load` would refuse only in the middle of a run."""
    if int(options["ramp_repeats"]) not in range(1, 100, 2):
        raise UsageError(
            f"options.ramp_repeats = {options['ramp_repeats']} is invalid",
            hint="an odd number from 1 to 99: the majority decides",
        )
    if float(options["ramp_most_qps"]) < float(options["ramp_start_qps"]):
        raise UsageError(
            f"options.ramp_most_qps = {options['ramp_most_qps']} is invalid", hint="at least ramp_start_qps"
        )
    if options["early_data"] and options["transport"] in ENCRYPTED:
        _check_early_data(options)
    if options["proxy_protocol"] and options["transport"] == "doq":
        raise UsageError(
            "options.proxy_protocol: no client is announced over DoQ", hint="choose another transport, or leave it out"
        )


def _check_early_data(options: Options) -> None:
    """Raise UsageError if no query could leave with the first flight of a resumed session (0-RTT)."""
    if not options["resumption"]:
        raise UsageError("options.early_data needs sessions that are resumed", hint="leave resumption = false out")
    if options["transport"] == "doh" and options["doh_method"] != "get":
        raise UsageError(
            "options.early_data over DoH permits only requests that are safe to repeat (RFC 8470)",
            hint='set doh_method = "get"',
        )


SEEDS_APART = 1000
"""The seeds of one value of ``queries.seed`` are below this number."""


def queries(
    options: Options, zones: Path, *, seed: int, recursive: bool, asked: QueriesSpec | None = None
) -> list[str]:
    """Arguments for the names of the queries, and for their flags: the names of ``asked``, or else of ``zones``.

    ``seed``: parts of a trial with different missing names have different seeds, because a cache may answer the second
    query for a name.
    """
    words = query_files.arguments(asked) if asked is not None else []
    if asked is not None:
        seed += SEEDS_APART * (int(asked.parameters["seed"]) - 1)
    if asked is None or not asked.name:
        words += _of_dataset(options, zones)
    words.append(f"--seed={seed}")
    if asked is not None and asked.complete:
        return words
    words.append(f"--edns={options['edns_bytes']}")
    return [*words, "--recursion-desired"] if recursive else words


def _of_dataset(options: Options, zones: Path) -> list[str]:
    if (own := zones.with_name(QUERIES_FILE)).exists():
        return [f"--queries={own}"]
    return [f"--zones={zones}", f"--popularity={options['popularity']}", f"--missing={options['missing_share']}"]


def clients(options: Options) -> list[str]:
    """Arguments for clients and transport. `load` refuses options that the transport does not have."""
    transport = options["transport"]
    words = [
        f"--transport={transport}",
        f"--clients={options['clients']}",
        f"--timeout-s={options['timeout_s']}",
        "--real-time",
    ]
    if options["proxy_protocol"]:
        words.append("--proxy-protocol")
    if transport != "udp":
        words.append(f"--queries-per-connection={options['queries_per_connection']}")
    if transport == "doh":
        words.append(f"--doh-path={options['doh_path']}")
        words.append(f"--doh-method={options['doh_method']}")
    if transport in ENCRYPTED and not options["resumption"]:
        words.append("--no-resumption")
    if transport in ENCRYPTED and options["early_data"]:
        words.append("--early-data")
    return words


def fixed_rate(rate_qps: float, *, duration_s: float, interval_s: float, poisson: bool) -> list[str]:
    """Arguments of the model `rate`, which does not depend on the server."""
    words = [f"--rate={rate_qps:.12g}", f"--duration-s={duration_s:g}", f"--interval-s={interval_s:g}"]
    return [*words, "--poisson"] if poisson else words


def ramp(options: Options) -> list[str]:
    """Arguments of the model `ramp`, which searches the highest rate that holds."""
    return [
        "--ramp",
        f"--duration-s={options['ramp_step_s']}",
        f"--ramp-start={options['ramp_start_qps']}",
        f"--ramp-max={options['ramp_most_qps']}",
        f"--ramp-loss={options['ramp_loss_percent']}",
        f"--ramp-latency-ms={options['ramp_latency_ms']}",
        f"--ramp-percentile={options['ramp_percentile']}",
        f"--ramp-repeats={options['ramp_repeats']}",
        f"--ramp-precision={options['ramp_precision_percent']}",
    ]


def ramp_expected_s(options: Options) -> float:
    """Duration of a ramp, approximately: ten doublings, then as many halvings of the gap as the precision needs."""
    precision = max(float(options["ramp_precision_percent"]), 0.1) / 100
    steps = 8 + math.log2(math.log(2) / math.log1p(precision))
    return steps * (float(options["ramp_step_s"]) + 0.3) * (int(options["ramp_repeats"]) // 2 + 1)


def rounded_down(rate_qps: float) -> float:
    """``rate_qps`` rounded down to two significant digits, so that repeats with almost equal capacities get the same
    rate.

    >>> rounded_down(47_900.0)
    47000.0
    """
    if rate_qps <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(rate_qps)) - 1)
    # A hair more, for 0.29 / 0.01 is less than 29 in binary.
    return math.floor(rate_qps / unit * (1 + 1e-9)) * unit
