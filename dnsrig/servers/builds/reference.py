"""The part of a name after the @ of ``bind@git:v9.18.10 --with-x``: a commit, or a range of commits, and build options.

REF or FIRST..LAST is followed by words, separated as in a shell:

``debug=symbols``   compiled with ``-O2 -g -fno-omit-frame-pointer``, so that profiles have names
``suite=SUITE``     the Debian suite whose compiler and libraries are used; by default the recipe chooses by the commit
``+PACKAGE``        one more Debian package of that suite, if a build option needs it
``steps=STEPS``     for a range: ``tags``, ``commits``, or the number of commits
any other word      a build option, passed to the server's own ``configure`` or ``meson setup``
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

from dnsrig.errors import UsageError
from dnsrig.servers import debian
from dnsrig.servers.builds.recipe import Recipe
from dnsrig.servers.builds.repository import Repository

PREFIX = "git:"
REF = r"[A-Za-z0-9_][\w./+@^~-]*?"
"""A tag, a branch or a hash, perhaps with a suffix of gitrevisions(7). git refuses the rest."""
MOST_WORDS = 50
_COMMIT = re.compile(rf"(?P<ref>{REF})(\.\.(?P<last>{REF}))?")
_PACKAGE = re.compile(r"\+(?P<name>[a-z0-9][a-z0-9.+-]+)")
_STEPS = re.compile(r"tags|commits|[1-9]\d{0,2}")


@dataclass(frozen=True)
class Reference:
    """One build, or with ``last`` a range of them."""

    ref: str
    last: str = ""
    options: tuple[str, ...] = ()
    """Options of the server's own ``configure``."""
    packages: tuple[str, ...] = ()
    suite: str = ""
    symbols: bool = False
    steps: str = ""
    place: str = ""
    """The checkout of the user; empty: the server's repository."""

    @property
    def is_range(self) -> bool:
        return bool(self.last)

    @property
    def source(self) -> str:
        """The source as in ``KIND@SOURCE``, with its words in a fixed order, so that equal builds have equal texts."""
        words = [f"+{name}" for name in self.packages]
        words += [f"suite={self.suite}"] if self.suite else []
        words += ["debug=symbols"] if self.symbols else []
        words += [f"steps={self.steps}"] if self.steps else []
        commits = f"{self.ref}..{self.last}" if self.last else self.ref
        first = self.place if self.place else PREFIX + commits
        if self.place and (words or self.options):
            first = shlex.quote(self.place)
        return " ".join([first, *words, *([shlex.join(self.options)] if self.options else [])])

    def at(self, ref: str) -> Reference:
        """This build, for another commit."""
        return replace(self, ref=ref, last="", steps="")


def takes(source: str) -> bool:
    return source.startswith(PREFIX)


def parse(source: str) -> Reference:
    """Read ``git:REF WORD…`` or ``git:FIRST..LAST WORD…``. Raises UsageError for other texts."""
    try:
        first, *words = shlex.split(source.removeprefix(PREFIX))
    except ValueError as error:
        what = f"{source!r} names no commit" if source.strip() == PREFIX else f"{source!r}: {error}"
        raise UsageError(what, hint="write e.g. git:v9.18.10, and quote a word that has spaces in it") from error
    commits = _COMMIT.fullmatch(first)
    if commits is None or len(words) > MOST_WORDS:
        raise UsageError(
            f"{first!r} is not a commit", hint="a tag, a branch or a hash: git:v9.18.10; a range: git:v1..v2"
        )
    found = Reference(commits["ref"], commits["last"] or "")
    for word in words:
        found = _with(found, word)
    if found.steps and not found.is_range:
        raise UsageError(f"{source!r}: only a range has steps", hint=f"write git:FIRST..LAST steps={found.steps}")
    return found


def first_word(source: str) -> tuple[str, str]:
    """The first word of ``'/path of a checkout' WORD…``, and the rest. Raises UsageError if a quote is missing."""
    try:
        first, *words = shlex.split(source)
    except ValueError as error:
        raise UsageError(f"{source!r}: {error}", hint="quote a word that has spaces in it") from error
    return first, shlex.join(words)


def with_words(found: Reference, text: str) -> Reference:
    """``found`` with the words of a build in ``text``. A checkout has no range."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint="quote a word that has spaces in it") from error
    for word in words:
        found = _with(found, word)
    if found.steps:
        raise UsageError(f"{text!r}: a checkout has no steps", hint="leave steps=… out")
    return found


def _with(found: Reference, word: str) -> Reference:
    name, _, value = word.partition("=")
    if package := _PACKAGE.fullmatch(word):
        return replace(found, packages=tuple(sorted({*found.packages, package["name"]})))
    if name == "suite":
        return replace(found, suite=_known(word, debian.SUITE, value, "suite=bookworm"))
    if name == "debug":
        _known(word, re.compile("symbols"), value, "debug=symbols")
        return replace(found, symbols=True)
    if name == "steps":
        return replace(found, steps=_known(word, _STEPS, value, "steps=tags, steps=commits or steps=5"))
    return replace(found, options=(*found.options, word))


def _known(word: str, pattern: re.Pattern[str], value: str, example: str) -> str:
    if not pattern.fullmatch(value):
        raise UsageError(f"{word!r} is not a valid word in a build", hint=f"write {example}")
    return value


MOST_STEPS = 200
"""Largest number of builds of one range: more is a mistake, or work for a bisection."""
SHORT = 12
"""Digits shown of a hash: enough to tell the commits of the largest repositories apart."""


def chosen(recipe: Recipe, repository: Repository, wanted: Reference) -> list[str]:
    """The refs of the range, from the first on; the ends are named as in ``wanted``.

    ``tags`` takes releases by their version numbers, so the range may cross branches; this is the default if both ends
    are releases. Commits are the commits of the branch itself, without the commits inside merges.
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
    """Evenly spread ``count`` of ``refs``, with the first and the last; all if there are not more."""
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
