"""Many questions to a resolver at once, and what comes for each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
from resolver_host import RESOLVER

LIMIT_S = 30.0
"""No resolver takes longer to give up."""
AT_ONCE = 100
"""So many questions wait for an answer: fewer than any resolver lets wait."""
NO_ANSWER = "no answer"
UNREACHABLE_SHARE_MAX = 0.05
"""The largest share of names that are asked for again."""


class Outcome(NamedTuple):
    """Of a question for the address of a name."""

    rcode: str
    addresses: int
    is_secure: bool = False
    """Whether the answer has AD; without DO it says nothing."""


def ask(wanted: dict[str, Outcome], *, with_do: bool, limits_s: dict[str, float] | None = None) -> dict[str, Outcome]:
    """What comes for each name of ``wanted``. ``limits_s``: name -> time to wait for its answer, where it
    is less than `LIMIT_S`.

    When other tests take the CPU from the servers of the world for seconds, a resolver says SERVFAIL (Knot Resolver
    with the extended error "No Reachable Authority", RFC 8914) for names that it resolves a moment later. So unwanted
    SERVFAILs are asked for once more, if they are few. What a resolver judges wrongly, it judges so again.
    """
    found = asyncio.run(_ask(wanted, with_do, limits_s or {}))
    again = [name for name, outcome in found.items() if outcome.rcode == "SERVFAIL" != wanted[name].rcode]
    if 0 < len(again) <= UNREACHABLE_SHARE_MAX * len(wanted):
        found |= asyncio.run(_ask(again, with_do, limits_s or {}))
    return found


async def _ask(names: Iterable[str], with_do: bool, limits_s: dict[str, float]) -> dict[str, Outcome]:
    window, names = asyncio.Semaphore(AT_ONCE), list(names)

    async def one(name: str) -> Outcome:
        query = dns.message.make_query(name, "A", want_dnssec=with_do)
        async with window:
            try:
                answer, _ = await dns.asyncquery.udp_with_fallback(
                    query,
                    RESOLVER,
                    timeout=limits_s.get(name, LIMIT_S),
                    # A slow server's answer to the resolver may come when its port is already ours: both share a host.
                    ignore_unexpected=True,
                    ignore_errors=True,
                )
            except dns.exception.Timeout:
                return Outcome(NO_ANSWER, 0)
        addresses = sum(len(rrset) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.A)
        return Outcome(dns.rcode.to_text(answer.rcode()), addresses, bool(answer.flags & dns.flags.AD))

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
