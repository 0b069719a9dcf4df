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


class Outcome(NamedTuple):
    """Of a question for the address of a name."""

    rcode: str
    addresses: int
    is_secure: bool = False
    """Whether the answer has AD; without DO it says nothing."""


async def ask(names: Iterable[str], *, with_do: bool, limits_s: dict[str, float] | None = None) -> dict[str, Outcome]:
    """What comes for each name. ``limits_s``: where it is not waited for so long as `LIMIT_S`."""
    window, limits, names = asyncio.Semaphore(AT_ONCE), limits_s or {}, list(names)

    async def one(name: str) -> Outcome:
        query = dns.message.make_query(name, "A", want_dnssec=with_do)
        async with window:
            try:
                answer, _ = await dns.asyncquery.udp_with_fallback(
                    query,
                    RESOLVER,
                    timeout=limits.get(name, LIMIT_S),
                    # A slow server's answer to the resolver may come when its port is already ours: both share a host.
                    ignore_unexpected=True,
                    ignore_errors=True,
                )
            except dns.exception.Timeout:
                return Outcome(NO_ANSWER, 0)
        addresses = sum(len(rrset) for rrset in answer.answer if rrset.rdtype == dns.rdatatype.A)
        return Outcome(dns.rcode.to_text(answer.rcode()), addresses, bool(answer.flags & dns.flags.AD))

    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
