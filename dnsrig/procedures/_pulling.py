"""What `transfer` is to fetch, and how: its arguments from the options of a procedure and the trial's keys. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar, TransferSpec
from dnsrig.servers import keys
from dnsrig.servers.keys import TransferKeys

Options = Mapping[str, Scalar]

CLIENT = "client"
"""The host that the instrument runs on, apart from the one of those that watch."""
POLICIES = ("one", "reused", "pipelined")
CHOICES = {
    "policy": POLICIES,
    "close": ("fin", "rst"),
    "soa": ("none", "udp", "same"),
    "verify": ("none", "ca", "pin"),
}
OPTIONS: dict[str, Scalar] = {
    "policy": "pipelined",
    "window": 100,
    "connections": 1,
    "close": "fin",
    "soa": "none",
    "verify": "pin",
    "resumption": True,
    "quickack": False,
    "nagle": False,
    "congestion": "",
    "retries": 3,
    "retry_after_s": 1.0,
    "transfer_timeout_s": 10.0,
}
"""Shared by the procedures that transfer zones by the instrument; `pull` says what each one means."""


def check(options: Options) -> None:
    """Raise on what `transfer` would refuse only in the middle of a run."""
    for name, choices in CHOICES.items():
        if name in options and options[name] not in choices:
            raise UsageError(f"options.{name} = {options[name]!r}", hint=f"one of {', '.join(choices)}")
    for name, least, most in (("window", 0, 65_535), ("connections", 1, 1_000), ("retries", 0, 1_000)):
        if name in options and not least <= float(options[name]) <= most:
            raise UsageError(f"options.{name} = {options[name]}", hint=f"a number from {least} to {most:,}")


def how(options: Options) -> list[str]:
    """Connections, their sockets, and what is tried again; a pace of tens of milliseconds is stated in them."""
    words = [
        f"--policy={options['policy']}",
        f"--window={options['window']}",
        f"--connections={options['connections']}",
        f"--close={options['close']}",
        f"--soa={options['soa']}",
        f"--retries={options['retries']}",
        f"--retry-after={float(options['retry_after_s']) * 1000:g}ms",
        f"--timeout={float(options['transfer_timeout_s']) * 1000:g}ms",
    ]
    words += ["--quickack"] if options["quickack"] else []
    words += ["--nagle"] if options["nagle"] else []
    return [*words, f"--congestion={options['congestion']}"] if options["congestion"] else words


def over(transfer: TransferSpec, own: TransferKeys, options: Options, certificate: Path) -> list[str]:
    """The transport: TSIG, and XoT with the primary's certificate checked as `options.verify` says.

    ``certificate``: where the primary's own lies as a file, for ``ca``.
    """
    words = [f"--tsig={keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{own.tsig_secret}"] if transfer.tsig else []
    if not transfer.tls:
        return words
    words += ["--transport=xot", f"--verify={options['verify']}"]
    words += [] if options["resumption"] else ["--no-resumption"]
    checked = {
        "ca": [f"--ca={certificate}", f"--server-name={keys.TLS_NAME}"],
        "pin": [f"--pin={own.public_key_pin}"],
    }
    return [*words, *checked.get(str(options["verify"]), [])]
