"""The compared resolvers have different settings, for example only one uses QNAME minimisation.

QNAME minimisation, prefetching, answers with stale data, aggressive use of NSEC, the size of the cache, limits and
timeouts: each of these changes hit ratio, latency and upstream queries as much as the choice of resolver. By default
all resolvers have the same settings here. An experiment that changes them for only one resolver compares its settings,
not the resolvers.

Two resolvers are comparable if a variant of one has the same settings as a variant of the other. If a server's own
setting replaces one of these, it counts as a separate value, because settings of different servers are not comparable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Any

from dnsrig.rundir import Manifest, TrialSpec
from dnsrig.servers import all_drivers
from dnsrig.traps import CLEAR, Conclusion

ORDER = 30
GROUP = "resolvers and replayed traffic"
TITLE = "compared resolvers have different settings"
SOURCE = "Comparisons of resolvers that were withdrawn, because one had a different limit or used QNAME minimisation"
WEIGHT = "invalidates"
CODE = re.compile(r"\x60([^\x60]*)\x60")
WORD = re.compile(r"[\w.-]+")

Settings = Mapping[str, str]


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    return look(manifest.specs.values())


def look(specs: Iterable[TrialSpec]) -> Conclusion:
    """The conclusion about all variants."""
    of: dict[str, list[Settings]] = defaultdict(list)
    if len({spec.server.name for spec in specs if spec.server is not None and spec.runs_already}) > 1:
        return Conclusion(
            "cannot-tell", summary="The servers run already, and their settings cannot be seen from outside."
        )
    for spec in specs:
        server = spec.server
        if (settings := settings_of(spec)) is not None and server is not None:
            of[server.name].append(settings)
    for one, other in combinations(of, 2):
        fewest = min((differing(mine, theirs) for mine, theirs in product(of[one], of[other])), key=len)
        if fewest:
            return _found(one, other, fewest)
    return CLEAR


def settings_of(spec: TrialSpec) -> Settings | None:
    """Settings of the resolver under test, by their common names; None for other servers."""
    host = spec.hosts[spec.subject]
    if host.resolving is None or host.server is None or (driver := all_drivers().get(host.server.kind)) is None:
        return None
    able = driver.as_resolver
    if able is None:
        return None
    found = {name: str(value) for name, value in host.resolving.model_dump().items()}
    for own, value in host.settings.items():
        found |= dict.fromkeys(stands_for(able.words, own), f"{own} = {value}")
    return found


def stands_for(said: Mapping[str, str], own: str) -> list[str]:
    """The common settings that a server's own setting changes, according to its driver."""
    last = own.rpartition(".")[2]
    words = {name: {word for code in CODE.findall(text) for word in WORD.findall(code)} for name, text in said.items()}
    return [name for name, known in words.items() if own in known or last in known]


def differing(one: Settings, other: Settings) -> dict[str, tuple[str, str]]:
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


def _found(one: str, other: str, differing: Mapping[str, tuple[str, str]]) -> Conclusion:
    told = [f"{name} is {mine} and {theirs}" for name, (mine, theirs) in differing.items()]
    return Conclusion(
        "found",
        summary=f"No variant of {one} has the same settings as a variant of {other}: {', '.join(told)}.",
        evidence={"server": one, "other": other}
        | {name: f"{mine}, {theirs}" for name, (mine, theirs) in differing.items()},
        metrics=("cache_hits_percent", "upstream_a_query"),
        remedy="Give all resolvers the same settings under `hosts.resolver.resolving`, or make the setting an axis of the matrix.",
    )
