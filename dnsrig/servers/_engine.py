"""What the parts of the engine that stand in for a server have in common: all of their configuration is on the command
line.

Settings are the options of the subcommand without their dashes. One that may be given several times takes its values
separated by spaces.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar
from dnsrig.servers import keys
from dnsrig.servers.driver import Driver
from dnsrig.servers.placement import Placement


class EngineDriver(Driver):
    """A subcommand of the engine, as a server."""

    executable = "dnsrig-engine"
    packages = ()
    only_source = "engine"
    writes_kept = True
    version_arguments = ("--version",)
    version_pattern = r"dnsrig-engine (\d\S*)"
    log_clock_resolution_ns = 1
    repeatable: frozenset[str] = frozenset()
    """Settings of which one text may hold several values."""

    def configure(self, placement: Placement) -> None:
        """What is wrong on the command line is told before anything is started."""
        known = {setting.name for setting in self.settings}
        if unknown := sorted(set(placement.settings) - known):
            raise UsageError(f"{self.kind} has no setting {unknown[0]!r}", hint=f"it has: {', '.join(sorted(known))}")

    def words(self, options: Mapping[str, Scalar]) -> list[str]:
        """``options`` as arguments; one that is true has no value, one that is false is left out."""
        found = []
        for name, value in options.items():
            if isinstance(value, bool):
                found += [f"--{name}"] if value else []
            elif name in self.repeatable:
                found += [f"--{name}={part}" for part in str(value).split()]
            else:
                found.append(f"--{name}={value}")
        return found

    def log_time_ns(self, line: str) -> int | None:
        return None


def tsig(placement: Placement) -> str:
    """The key as the engine takes it: ALGORITHM:NAME:SECRET."""
    return f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{placement.keys.tsig_secret}"
