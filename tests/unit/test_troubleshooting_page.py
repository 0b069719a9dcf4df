"""The errors that the page on troubleshooting quotes are the ones that the code prints."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/troubleshooting.md"
QUOTED = [
    "program dnsrig-engine is missing",
    "setup: cargo is missing",
    "making hosts (network namespaces) needs root",
    "two hosts cannot be made",
    "no packets pass between two hosts joined by veth",
    " cannot be written",
    "there is no experiment ",
    "servers from Debian suites need apt-get",
    "apt on this machine has no Debian mirror configured",
    "the mirror has no suite ",
    "apt downloaded ",
    "does not print a version like ",
    "git does not trust ",
    "cannot be built",
    "servers cannot be given the path ",
    "the disk is nearly full",
    " trials in a row failed: ",
    "this run cannot be resumed: ",
    "that would be ",
    " is taken by ",
    "is neither loopback nor in the ranges kept for benchmarks",
    "a Python package is missing: ",
    "Dask is not installed",
    "no scheduler answers at ",
    "dnsrig is not root",
    " differ in ",
]


@cache
def sources() -> str:
    files = [
        ROOT / "Makefile",
        *(ROOT / "dnsrig").rglob("*.py"),
        *(ROOT / "engine/dnsrig-core/src").rglob("*.rs"),
    ]
    return "".join(path.read_text() for path in files)


@pytest.mark.parametrize("text", QUOTED)
def test_the_page_quotes_an_error_of_the_code(text: str) -> None:
    assert text in PAGE.read_text() and text in sources()
