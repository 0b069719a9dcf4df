"""Knot DNS, from 3.0 on: the daemon and what controls it."""

from __future__ import annotations

from dnsrig.servers.builds.recipe import AUTOTOOLS, Method, Recipe, Tree

_LIBRARIES = ("libcap-ng-dev", "libedit-dev", "libgnutls28-dev", "libhiredis-dev", "liblmdb-dev", "liburcu-dev")
_SCRIPT = """\
autoreconf -fi
./configure --prefix="$PREFIX" --disable-static --enable-fastparser --disable-xdp --disable-documentation \\
    --disable-utilities "$@"
make -j"$JOBS"
make install
"""
"""The parser of zone files that a distribution ships is the fast one."""


def method(tree: Tree) -> Method:
    return Method("trixie", (*AUTOTOOLS, *_LIBRARIES), _SCRIPT)


RECIPE = Recipe(
    repository="https://gitlab.nic.cz/knot/knot-dns.git",
    markers=("src/libknot/xdp/xdp.h",),
    release=r"v(?P<version>[3-9]\.\d+\.\d+)",
    method=method,
    left_out=("tests-extra",),
)
