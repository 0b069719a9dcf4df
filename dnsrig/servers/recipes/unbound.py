"""Unbound, from 1.7 on."""

from __future__ import annotations

from dnsrig.servers.builds.recipe import Method, Recipe, Tree

_LIBRARIES = ("bison", "flex", "libevent-dev", "libexpat1-dev", "libnghttp2-dev", "libssl-dev")
_SCRIPT = """\
./configure --prefix="$PREFIX" --with-libevent --with-libnghttp2 "$@"
make util/configlexer.c
make -j"$JOBS"
make install
"""
"""Processes side by side would each make the scanner of the configuration."""


def method(tree: Tree) -> Method:
    return Method("bookworm", _LIBRARIES, _SCRIPT)


RECIPE = Recipe(
    repository="https://github.com/NLnetLabs/unbound.git",
    markers=("services/authzone.c",),
    release=r"release-(?P<version>\d+\.\d+\.\d+)",
    method=method,
    left_out=("testdata",),
)
