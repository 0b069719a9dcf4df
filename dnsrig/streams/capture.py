"""The queries in a capture of your own (docs/how-to/replay.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar

DESCRIPTION = "the queries of a capture of yours: pcap, pcapng, dnstap or C-DNS"
DEFAULTS: dict[str, Scalar] = {
    "file": "",
    "server": "",
    "keep_share": 1.0,
    "cut": "",
    "speed": 1.0,
    "multiply": 1,
    "transport": "",
    "edns": "",
    "do_share": "",
    "gap_s": 3600,
    "seed": 1,
}
RANGES = {"multiply": (1, 1000), "gap_s": (1, 10_000_000)}
NOT_CHANGED = ("cut", "edns", "do_share")
"""Parameters that leave the queries as they were captured if they are empty."""


def validate(parameters: Mapping[str, Scalar]) -> None:
    if not parameters["file"]:
        raise UsageError("stream.file is missing", hint="the path of a capture of DNS queries")


def files(parameters: Mapping[str, Scalar]) -> list[Path]:
    return [Path(str(parameters["file"]))]


def arguments(parameters: Mapping[str, Scalar], dataset: Path) -> list[str]:
    """Arguments of `dnsrig replay prepare`. ``server`` and ``transport`` may contain several values, with commas
    between them."""
    words = [f"--{name}={value}" for name in ("server", "transport") for value in _each(str(parameters[name]))]
    words += [f"--{name.replace('_', '-')}={parameters[name]}" for name in NOT_CHANGED if parameters[name]]
    numbers = {
        "keep-share": parameters["keep_share"],
        "speed": parameters["speed"],
        "multiply": parameters["multiply"],
        "gap-s": parameters["gap_s"],
        "seed": parameters["seed"],
    }
    given = [f"--{name}={value}" for name, value in numbers.items()]
    return ["replay", "prepare", *(str(file.expanduser()) for file in files(parameters)), *words, *given]


def _each(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
