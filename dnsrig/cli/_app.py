"""Puts the commands together, and turns an error into one sentence, a hint and an exit status."""

from __future__ import annotations

import atexit
import errno
import functools
import gc
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from dnsrig import discovery, interruption
from dnsrig.cli import _console, _former
from dnsrig.cli._exits import EXIT_BROKEN_PIPE, EXIT_ERROR, EXIT_INTERRUPTED
from dnsrig.errors import DnsrigError
from dnsrig.text import visible

# The end of a process frees its memory anyway. Python's search for garbage before it takes 0.3 s after a run.
atexit.register(gc.freeze)

TRACEBACK = "DNSRIG_TRACEBACK"
HELP_OPTIONS = ["-h", "--help"]
HELP = "A test rig for DNS servers. Start with `dnsrig check`, then `dnsrig run tour`."
GROUPS: dict[str, Sequence[str]] = {
    "Measure": ("bench", "run", "report", "browse"),
    "Compare and plan": ("compare", "history", "bisect", "watch-branch", "plan"),
    "Tools": (
        *("load", "transfer", "replay", "interrogate", "probe", "propagation"),
        *("change", "serve", "generate", "watch", "clock", "merge"),
    ),
    "Exchange": ("import", "export"),
    "Maintenance": ("check", "calibrate", "servers", "machines", "clean", "list"),
}
"""Heading in the help -> its commands, in the order of the help."""


class Commands(TyperGroup):
    """The commands in the order of `GROUPS`, and after them commands that no group has."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in GROUPS.values() for name in names]
        return sorted(self.commands, key=lambda name: order.index(name) if name in order else len(order))


def application() -> typer.Typer:
    app = typer.Typer(
        name="dnsrig",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP_OPTIONS},
    )
    app.callback()(options)
    for module in discovery.modules("dnsrig.cli"):
        module.add(app)
    panels = {name: panel for panel, names in GROUPS.items() for name in names}
    for group in (app, *(inner.typer_instance for inner in app.registered_groups)):
        for command in group.registered_commands if group else ():
            command.help = reflowed(command.help or inspect.getdoc(command.callback) or "")
            command.cls = _former.Command
            command.rich_help_panel = panels.get(command.name or "")
    for inner in app.registered_groups:
        inner.rich_help_panel = panels[inner.name or ""]
    return app


@functools.cache
def command_line() -> Any:
    """The whole command line, built once for each process, because tests call `main` often."""
    command = typer.main.get_command(application())
    for parameter in command.params:
        if parameter.name == "install_completion":
            parameter.help = "Install completion for this shell."  # type: ignore[attr-defined]
        elif parameter.name == "show_completion":
            parameter.hidden = True  # type: ignore[attr-defined]
    _flags_have_no_value(command)
    return command


def _flags_have_no_value(command: Any) -> None:
    """Without this the help says ``--dry-run <bool>``."""
    for inner in getattr(command, "commands", {}).values():
        _flags_have_no_value(inner)
    help_option = command.get_help_option(command.context_class(command, help_option_names=HELP_OPTIONS))
    for parameter in (*command.params, help_option):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


def options(
    version: bool = typer.Option(
        False,
        "--version",
        is_eager=True,
        callback=lambda wanted: wanted and print_version(),
        help="Print all versions and exit.",
    ),
) -> None:
    """Take the options of dnsrig itself."""


def print_version() -> NoReturn:
    """Print version and commit of the package, and version and build profile of the engine, a line each."""
    from dnsrig.version import engine, package

    typer.echo(package())
    typer.echo(engine())
    raise typer.Exit


def reflowed(text: str) -> str:
    """``text`` with each paragraph in one line, which the terminal wraps; indented lines are kept."""
    return "\n\n".join(
        paragraph if paragraph.startswith(" ") else " ".join(paragraph.split()) for paragraph in text.split("\n\n")
    )


def complain(message: str, hint: str = "") -> None:
    console = _console.err(soft_wrap=True)
    console.print(Text("dnsrig: ", style="bold red") + Text(_visible(message), style=""))
    if hint:
        console.print(Text("hint: ", style="bold") + Text(_visible(hint), style=""))


def _visible(text: str) -> str:
    """Text from outside, line by line, because some exceptions have several lines."""
    return "\n".join(map(visible, text.split("\n")))


def _explain(error: Exception) -> NoReturn:
    """Print the traceback if it is asked for, and exit."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    sys.exit(getattr(error, "exit_code", EXIT_ERROR))


@interruption.caught()
def main() -> None:
    try:
        command_line()(standalone_mode=True)
    except SystemExit as ended:
        # Typer turns an interrupt into an exit status, without a message.
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            complain("interrupted")
        raise
    except DnsrigError as error:
        complain(error.message, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            complain(
                f"the disk is full ({error.filename or 'while writing'})",
                "free some space; `dnsrig run --resume RUN` then continues a run",
            )
            sys.exit(getattr(error, "exit_code", EXIT_ERROR))
        complain(f"{error.strerror or error} ({error.filename})" if error.filename else str(error))
        _explain(error)
    except Exception as error:
        complain(f"{type(error).__name__}: {error}", f"this is a bug; {TRACEBACK}=1 shows the traceback")
        _explain(error)
