"""Checks of held connections: whether the instrument tried to open as many as the variant's name says."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.runs import held
from dnsrig.runs.trial import Trial

LEAST_PERCENT = 99.0


@check(title="connections that the holder began", unit="% of options.held")
def connections_opened(trial: Trial) -> Seen:
    """Share of ``options.held`` that the holder began to open before `measure`. Connections that the server did not
    accept count: its limit is a result."""
    found = held.of(trial)
    if found is None:
        return cannot_tell("there is no summary of the held connections")
    begun, asked = found.opening.connections, int(trial.record.spec.options["held"])
    why = f"this host had no free port for {begun.no_port:,}" if begun.no_port else "the instrument was too slow"
    return Seen(100 * begun.attempted / asked, least=LEAST_PERCENT, asked=asked, why=why)
