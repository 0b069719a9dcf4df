"""`dnsrig generate`, `watch`, `probe`, `propagation`, `load`, `transfer`, `interrogate`, `serve`, `change`, `replay`,
`clock`, `merge`: the engine's subcommands, passed straight through."""

from __future__ import annotations

import os

import typer

from dnsrig import paths

SUBCOMMANDS = {
    "generate": "Make zones of any number or size, or clients, from a seed (engine).",
    "watch": "Sample what the operating system counts (engine).",
    "probe": "See when a serial becomes visible on a server (engine).",
    "propagation": "Measure how long a change takes from a primary to its secondaries (engine).",
    "load": "Put queries on a server and see how it answers (engine).",
    "replay": "Prepare clients' captured traffic and put it on a server, each client with its own address (engine).",
    "transfer": "Take zones from a primary as secondaries do, and see how it gives them (engine).",
    "interrogate": "Ask a primary what it supports of zone transfer (engine).",
    "serve": "Be a server whose behaviour is known (engine).",
    "change": "Change zones of a primary at a constant rate, by dynamic updates (engine).",
    "clock": "Tell how far the clocks of two machines lie apart, and how sure that is (engine).",
    "merge": "Put together what several generators of one load wrote (engine).",
}
PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add(app: typer.Typer) -> None:
    for name, text in SUBCOMMANDS.items():
        app.command(name, help=text, context_settings=PASS_THROUGH, add_help_option=False)(_passing(name))


def _passing(name: str):  # type: ignore[no-untyped-def]
    def command(context: typer.Context) -> None:
        engine = str(paths.engine())
        os.execv(engine, [engine, name, *context.args])

    return command
