"""`dnsrig generate`, `watch`, `probe`, `propagation`, `load`, `transfer`, `interrogate`, `serve`, `change`, `replay`,
`clock`, `merge`: the engine's subcommands, which get all arguments unchanged."""

from __future__ import annotations

import os

import typer

from dnsrig import paths

SUBCOMMANDS = {
    "load": "Send queries to a server and measure its answers.",
    "transfer": "Transfer zones from a primary and time each of them.",
    "replay": "Replay captured traffic of clients to a server.",
    "interrogate": "Ask a primary what it supports of zone transfer.",
    "probe": "See when a server answers for each of many zones.",
    "propagation": "Time changes from a primary to its secondaries.",
    "change": "Change zones of a primary at a constant rate.",
    "serve": "Run a server whose behaviour is known.",
    "generate": "Generate zones, clients or a simulated Internet.",
    "watch": "Record CPU, memory, sockets and links of hosts.",
    "clock": "Measure how far the clocks of two machines differ.",
    "merge": "Merge the results of several load generators.",
}
PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add(app: typer.Typer) -> None:
    for name, text in SUBCOMMANDS.items():
        app.command(name, help=text, context_settings=PASS_THROUGH, add_help_option=False)(_passing(name))


def _passing(name: str):  # type: ignore[no-untyped-def]
    def command(context: typer.Context) -> None:
        engine = str(paths.engine())
        os.execv(engine, ["dnsrig", name, *context.args])

    return command
