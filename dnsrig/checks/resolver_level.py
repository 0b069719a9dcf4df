"""The resolver's DNSSEC level: as its twin showed before the measurement, and as the server itself showed after it.

A resolver requests signatures if its queries to authorities have DO. It validates if the answer for a good name has AD
and a broken name gets SERVFAIL; AD alone proves nothing. It does not validate if it answers both without AD. The level
must be the configured one, and the same on both; otherwise the trial measures something else. If the zones belong to
primaries, there is no broken name, and no resolver validates.
"""

from __future__ import annotations

from typing import Any

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "DNSSEC level"
NOERROR, SERVFAIL = 0, 2


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("level", {})
    asked = trial.record.spec.hosts[trial.subject].resolving
    if asked is None or not told.get("twin"):
        return cannot_tell("the resolver's twin was not tested")
    if "queries" not in told["twin"]:
        return cannot_tell("the kernel has no packet sockets, so the twin's queries are not known")
    twin = shown(told["twin"], told["twin"])
    itself = shown(told.get("server", {}), told["twin"])
    if twin != itself:
        return Seen(f"{twin} on the twin, {itself} on the server itself", asked=asked.level, why=_words(told))
    return Seen(twin, asked=asked.level, why=_words(told))


def shown(answers: dict[str, Any], upstream: dict[str, Any]) -> str:
    """The level that ``answers`` and ``upstream`` queries show; a few words if they show none."""
    good, broken = answers.get("good"), answers.get("broken")
    if not good or (broken is not None and not broken):
        return "no answer"
    if not _has_data(good):
        return "no data for the good name"
    refuses = broken is not None and broken["rcode"] == SERVFAIL
    if good["ad"]:
        return "validating" if refuses else "AD for the good name, and no SERVFAIL for a broken one"
    if refuses:
        return "SERVFAIL for the broken name, and no AD for the good one"
    if broken is not None and not _has_data(broken):
        return "no data for the broken name, and no SERVFAIL"
    if not upstream["queries"]:
        return "no upstream queries"
    return "do-unvalidated" if upstream["do"] else "no-do"


def _has_data(answer: dict[str, Any]) -> bool:
    return bool(answer["rcode"] == NOERROR and answer["records"] > 0)


def _words(told: dict[str, Any]) -> str:
    twin = told["twin"]
    return f"its twin sent {twin['queries']} queries, {twin['edns']} with EDNS and {twin['do']} with DO"
