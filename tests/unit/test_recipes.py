"""Recipes: which commit is a server's, what its releases are called, which toolchain an old or a new one gets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dnsrig.servers import all_drivers
from dnsrig.servers.builds.recipe import TOOLS, Recipe, Tree

RECIPES: dict[str, Recipe] = {kind: made.recipe for kind, made in all_drivers().items() if made.recipe is not None}


@dataclass(frozen=True)
class Files(Tree):
    """A commit that has these files, and is ``tag`` or comes after it."""

    files: tuple[str, ...] = ()
    tag: str = ""

    def has(self, path: str) -> bool:
        return path in self.files

    def release(self, pattern: str) -> str:
        return self.tag


def files(*names: str, tag: str = "") -> Files:
    return Files(None, "", names, tag)  # type: ignore[arg-type]


TAGS = {
    "bind": ("v9.18.10", (9, 18, 10), "v9.18.0rc1"),
    "knot": ("v3.5.6", (3, 5, 6), "v2.9.9"),
    "nsd": ("NSD_4_12_0_REL", (4, 12, 0), "NSD_4_12_0_RC1"),
    "powerdns": ("auth-5.1.4", (5, 1, 4), "auth-5.1.0-beta1"),
    "unbound": ("release-1.25.0", (1, 25, 0), "release-1.25.0rc1"),
}


def test_every_recipe_is_tried_here() -> None:
    assert set(RECIPES) == set(TAGS)


@pytest.mark.parametrize("kind", TAGS)
def test_releases_and_what_is_none(kind: str) -> None:
    tag, version, other = TAGS[kind]
    recipe = RECIPES[kind]
    assert recipe.version_of_tag(tag) == version
    assert recipe.version_of_tag(other) is recipe.version_of_tag("main") is None


@pytest.mark.parametrize("kind", TAGS)
def test_a_commit_is_of_one_server(kind: str) -> None:
    own = files(*RECIPES[kind].markers[:1])
    assert [other for other, recipe in RECIPES.items() if recipe.is_its(own)] == [kind]
    assert not RECIPES[kind].is_its(files("README"))


@pytest.mark.parametrize("kind", TAGS)
@pytest.mark.parametrize("built", [(), ("meson.build",), ("Makefile.am",)])
def test_a_script_obeys_what_it_is_given(kind: str, built: tuple[str, ...]) -> None:
    method = RECIPES[kind].method(files(*built))
    assert '"$@"' in method.script and "$PREFIX" in method.script and "$JOBS" in method.script
    assert set(method.packages).isdisjoint(TOOLS) and len(set(method.packages)) == len(method.packages)


def test_old_and_new_versions_of_bind_have_toolchains_of_their_own() -> None:
    recipe = RECIPES["bind"]
    old, autotools, meson = (recipe.method(files(*names)) for names in ((), ("Makefile.am",), ("meson.build",)))
    assert (old.suite, autotools.suite, meson.suite) == ("bookworm", "bookworm", "trixie")
    assert "autoconf" in autotools.packages and "meson" in meson.packages
    assert "autoreconf" not in old.script


def test_powerdns_is_told_the_release_it_comes_after() -> None:
    """It would ask git, and there is none beside the sources."""
    method = RECIPES["powerdns"].method
    assert "BUILDER_VERSION=5.1.4\n" in method(files(tag="auth-5.1.4")).script
    assert "BUILDER_VERSION=0\n" in method(files()).script
