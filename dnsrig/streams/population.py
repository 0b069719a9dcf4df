"""Queries of an invented population of clients, if there is no capture. The names come from the experiment's
dataset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dnsrig import datasets
from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar

DESCRIPTION = "clients with unequal rates, pages and popular names, who ask for the zones or delegations of the dataset"
OF_DATASET = True
DEFAULTS: dict[str, Scalar] = {
    "clients": 2000,
    "qps": 1000.0,
    "duration_s": 10.0,
    "seed": 1,
    "exponent": 1.34,
    "once": 0.0025,
    "missing": 0.161,
    "missing_once": 0.23,
    "missing_names": 1000,
    "spread": 1.55,
    "page_share": 0.5,
    "repeats": 0.008,
    "types": "A=87.9,AAAA=9.0,PTR=1.9,ANY=0.8,TXT=0.27,SRV=0.08",
    "edns_share": 0.014,
    "do_share": 0.005,
    "tcp_share": 0.00012,
    "keep_share": 1.0,
    "keep_queries": 1.0,
    "recursion_desired": True,
}
"""The options of `dnsrig generate clients`. Its help names the source of each default."""
RANGES = {
    "clients": (1, 16_000_000),
    "qps": (0.001, 10_000_000),
    "exponent": (0, 5),
    "once": (0, 1),
    "missing": (0, 1),
    "missing_once": (0, 1),
    "missing_names": (1, 10_000_000),
    "spread": (0, 5),
    "repeats": (0, 1),
    "keep_queries": (0, 1),
}
MOST_QUERIES = 1_000_000_000


def validate(parameters: Mapping[str, Scalar]) -> None:
    queries = float(parameters["qps"]) * float(parameters["duration_s"])
    if queries > MOST_QUERIES:
        raise UsageError(
            f"the stream would have {queries:,.0f} queries, more than {MOST_QUERIES:,}",
            hint="lower stream.qps or stream.duration_s",
        )


def arguments(parameters: Mapping[str, Scalar], dataset: Path) -> list[str]:
    told = {name: value for name, value in parameters.items() if name != "recursion_desired"}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in told.items()]
    wanted = [] if parameters["recursion_desired"] else ["--no-recursion-desired"]
    return ["generate", "clients", f"--names={datasets.names(dataset)}", *words, *wanted]
