"""Number of queries for names that the world does not have, not counting names that clients invent so that they do not
exist.

There must be none. The answer for a name that the world lacks is NXDOMAIN, which differs from the answer on the
Internet. With a capture, or with names that are asked for once in zones without a wildcard, cache hits, answers and
upstream queries would belong to different traffic.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.row_files.world import NOT_IN_WORLD
from dnsrig.runs.trial import Trial
from dnsrig.text import visible

TITLE = "queries for names that the world does not have"
SHOWN = 3


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("world", {})
    if "not_in_world" not in told:
        return cannot_tell("the world wrote no summary")
    names = trial.rows(NOT_IN_WORLD).sort("queries", descending=True)["name"].head(SHOWN).to_list()
    return Seen(told["not_in_world"], most=0, why=f"e.g. {', '.join(map(visible, names))}", series=(NOT_IN_WORLD.name,))
