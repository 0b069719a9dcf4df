"""The commits of a range that are built: releases, all commits, or some of them, evenly spread."""

from __future__ import annotations

from dnsrig.errors import UsageError
from dnsrig.servers.builds.recipe import Recipe
from dnsrig.servers.builds.reference import Reference
from dnsrig.servers.builds.repository import Repository

MOST_STEPS = 200
"""Builds of one range: more is a mistake, or work for a bisection."""
SHORT = 12
"""Digits of a hash: no two of the largest repositories' commits share them."""


def chosen(recipe: Recipe, repository: Repository, wanted: Reference) -> list[str]:
    """The refs of the range, from the first on; its ends are named as ``wanted`` names them.

    ``tags`` takes releases by their version numbers, so the range may go over branches; that is the default where both
    ends are releases. Commits are those of the branch itself, without the ones inside merges.
    """
    ends = recipe.version_of_tag(wanted.ref), recipe.version_of_tag(wanted.last)
    if (wanted.steps or ("tags" if all(ends) else "commits")) != "tags":
        return _limited(wanted, _commits(repository, wanted))
    first, last = ends
    if first is None or last is None:
        raise UsageError(
            f"{wanted.ref}..{wanted.last}: steps=tags goes from a release to a release",
            hint="name the tags of two releases, or write steps=commits or steps=10",
        )
    found = {tag: version for tag in repository.tags() if (version := recipe.version_of_tag(tag)) is not None}
    refs = sorted((tag for tag, version in found.items() if first <= version <= last), key=lambda tag: found[tag])
    if len(refs) < 2:
        raise UsageError(f"{wanted.ref}..{wanted.last} contains no releases", hint="the older one comes first")
    return _limited(wanted, refs)


def _commits(repository: Repository, wanted: Reference) -> list[str]:
    if not repository.is_ancestor(wanted.ref, wanted.last):
        raise UsageError(
            f"{wanted.ref} is not an ancestor of {wanted.last}, so no commits lie between them",
            hint="the older one comes first; between releases of two branches, write steps=tags",
        )
    between = [commit.hash[:SHORT] for commit in repository.between(wanted.ref, wanted.last, first_parent=True)]
    found = [wanted.ref, *between[:-1], wanted.last]
    return spread(found, int(wanted.steps)) if wanted.steps.isdigit() else found


def spread(refs: list[str], count: int) -> list[str]:
    """``count`` of ``refs``, evenly, with the first and the last; all where there are no more."""
    if count >= len(refs):
        return refs
    if count < 2:
        raise UsageError("steps=1: a range has two ends", hint="write steps=2 or more")
    return [refs[round(number * (len(refs) - 1) / (count - 1))] for number in range(count)]


def _limited(wanted: Reference, refs: list[str]) -> list[str]:
    if len(refs) > MOST_STEPS:
        raise UsageError(
            f"{wanted.ref}..{wanted.last} would be {len(refs):,} builds, more than {MOST_STEPS}",
            hint="take some of them, e.g. steps=10",
        )
    return refs
