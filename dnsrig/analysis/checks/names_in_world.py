"""How many queries were for names that the world does not have, but for those that clients make not to exist.

None must be. An answer for a name that the world does not cover is NXDOMAIN, which is another answer than the client
had on the Internet: with a capture, or with names that are asked for once in zones without wildcard, hits, answers and
upstream queries are those of another traffic.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial
from dnsrig.analysis.row_files.world import NOT_IN_WORLD
from dnsrig.text import visible

TITLE = "queries for names that the world does not have"
SHOWN = 3


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("world", {})
    if "not_in_world" not in told:
        return cannot_tell("the world said no summary")
    names = trial.rows(NOT_IN_WORLD).sort("queries", descending=True)["name"].head(SHOWN).to_list()
    return Seen(told["not_in_world"], most=0, why=f"e.g. {', '.join(map(visible, names))}", series=(NOT_IN_WORLD.name,))
