"""Share of the variant's settings for the server under test that the server then reported as effective.

A running Knot DNS or PowerDNS is asked after the measurement. For BIND and NSD, their own `named-checkconf` and
`nsd-checkconf` show how they read the configuration. Settings that they do not show, or show in a different notation,
do not count. A variant without settings has no such check.
"""

from __future__ import annotations

import re

from dnsrig.checks import Seen, cannot_tell
from dnsrig.rundir import Scalar
from dnsrig.runs.trial import Trial

TITLE = "settings effective on the server under test"
UNIT = "% of reported settings"
WORDS = {"true": "yes", "on": "yes", "false": "no", "off": "no"}
UNITS = {
    "": [1],
    "s": [1],
    "m": [60, 1 << 20],
    "h": [3600],
    "d": [86_400],
    "w": [604_800],
    "k": [1 << 10],
    "g": [1 << 30],
}
"""Factors of units of times and sizes: `m` may be either."""


def look(trial: Trial) -> Seen:
    shown = trial.record.instruments.get("settings", {})
    named = trial.record.spec.hosts[trial.subject].settings
    compared = {name: same(value, str(shown[name])) for name, value in named.items() if name in shown}
    told = [name for name, value in compared.items() if value is not None]
    if not told:
        return cannot_tell("the server did not report them")
    others = [f"{name} is {shown[name]}, not {named[name]}" for name in told if not compared[name]]
    return Seen(100 * (len(told) - len(others)) / len(told), least=100.0, why="; ".join(others))


def same(named: Scalar, shown: str) -> bool | None:
    """Whether both are the same value; None if only one is a number.

    >>> same(True, "on"), same("2w", "1209600"), same("4m", "4194304"), same(1, "PT1S"), same("none", "all")
    (True, True, True, None, False)
    """
    asked, found = (readings(text) for text in (str(named), shown))
    if isinstance(asked, set) != isinstance(found, set):
        return None
    return bool(asked & found) if isinstance(asked, set) and isinstance(found, set) else asked == found


def readings(text: str) -> set[float] | str:
    """The numbers that ``text`` may mean, or its words."""
    word = " ".join(text.strip().strip('"').lower().split())
    if match := re.fullmatch(r"(-?\d+(?:\.\d+)?) ?([smhdwkg]?)", word):
        return {float(match[1]) * factor for factor in UNITS[match[2]]}
    return WORDS.get(word, word)
