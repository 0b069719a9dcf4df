"""The commits of a server's repository between two, as candidates."""

from __future__ import annotations

from dnsrig.comparison.bisection.record import Candidate
from dnsrig.errors import UsageError
from dnsrig.experiment.bisection.candidates import SHORT_HASH, check
from dnsrig.servers import driver
from dnsrig.servers.sources import git


def commits(kind: str, good: str, bad: str, *, first_parent: bool) -> list[Candidate]:
    """From ``good`` on, each after its parents. ``first_parent``: of a merge only the branch that it was made on, so
    that a merge counts as one change.

    Raises UsageError where a reference does not exist, or ``bad`` does not come after ``good``.
    """
    server = driver(kind)
    first, last = git.commit(server, good), git.commit(server, bad)
    origin = git.repository_of(server)
    if first == last:
        raise UsageError(f"{good} and {bad} are one commit, {first[:SHORT_HASH]}", hint="there is nothing between them")
    if not origin.is_ancestor(first, last):
        turned = origin.is_ancestor(last, first)
        raise UsageError(
            f"{good} is not an ancestor of {bad}",
            hint=f"{bad} comes before {good}: swap them, and reverse the criterion if the result got better"
            if turned
            else f"use the commit at which their branches separate: git merge-base {good} {bad}",
        )
    between = origin.between(first, last, first_parent=first_parent)
    ends = {first: good, last: bad}
    found = [origin.commit(first), *between]
    return check(
        [
            Candidate(
                value=f"{kind}@git:{commit.hash}",
                name=ends.get(commit.hash, commit.hash[:SHORT_HASH]),
                subject=commit.subject[:200],
            )
            for commit in found
        ]
    )
