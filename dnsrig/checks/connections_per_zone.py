"""Number of connections for each zone that arrived: about one with the policy ``one``, few with ``reused`` and
``pipelined``.

The instrument `transfer` counts them; for a real secondary, the kernel of its host does. With ``one``, a zone that is
tried again needs another connection. Reused connections that the other side closes all the time are not reused.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.prediction import secondaries
from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial

TITLE = "connections for each zone that arrived"
ONE_LEAST = 0.9
REUSED_MOST = 0.5
FEWEST = 10
"""Least number of zones: with fewer, single connections would matter."""


def look(trial: Trial) -> Seen:
    told, spec = trial.transfer, trial.record.spec
    if "policy" in spec.options or "transfers" in spec.options:
        done, policy = told.get("done", 0), str(spec.options.get("policy", spec.options.get("transfers")))
        opened = told.get("connections", {}).get("established")
    else:
        done, policy = trial.record.instruments.get("probe", {}).get("seen", 0), _policy(spec)
        opened = trial.growth(trial.subject, "tcp", "active_opens")
    if opened is None or done < FEWEST:
        return cannot_tell(f"{done} zones arrived, which is too few")
    if policy == "one":
        return Seen(opened / done, least=ONE_LEAST, asked=policy)
    return Seen(opened / done, most=REUSED_MOST, asked=policy)


def _policy(spec: TrialSpec) -> str:
    """The policy of a secondary with its settings."""
    host = spec.hosts[spec.subject]
    known = secondaries.known().get(host.server.kind) if host.server else None
    return known.policy(host.settings, "xot" if spec.transfer.tls else "tcp") if known else "one"
