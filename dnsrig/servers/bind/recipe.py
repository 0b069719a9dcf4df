"""BIND 9, from 9.11 on."""

from __future__ import annotations

from dnsrig.servers.builds.recipe import AUTOTOOLS, MESON, Method, Recipe, Tree

_LIBRARIES = (
    *("libcap-dev", "libjemalloc-dev", "libjson-c-dev", "liblmdb-dev", "libnghttp2-dev", "libssl-dev", "liburcu-dev"),
    *("libuv1-dev", "libxml2-dev", "zlib1g-dev"),
)
_BEFORE_AUTOMAKE = """\
./configure --prefix="$PREFIX" --without-python --with-lmdb "$@"
make -j"$JOBS"
make install
"""
"""Script up to 9.16, whose repository contains `configure`."""
_AUTOMAKE = """\
autoreconf -fi
./configure --prefix="$PREFIX" --with-lmdb --with-json-c "$@"
make -j"$JOBS"
make install
"""
_MESON = """\
meson setup /mnt/build/out --prefix="$PREFIX" --libdir=lib --localstatedir=/run --buildtype=plain -Ddoc=disabled "$@"
meson compile -C /mnt/build/out -j "$JOBS"
meson install -C /mnt/build/out --no-rebuild
"""


def method(tree: Tree) -> Method:
    if tree.has("meson.build"):
        return Method("trixie", (*MESON, *_LIBRARIES), _MESON)
    if tree.has("Makefile.am"):
        return Method("bookworm", (*AUTOTOOLS, *_LIBRARIES), _AUTOMAKE)
    return Method("bookworm", _LIBRARIES, _BEFORE_AUTOMAKE)


RECIPE = Recipe(
    repository="https://gitlab.isc.org/isc-projects/bind9.git",
    markers=("bin/named/main.c",),
    release=r"v(?P<version>9\.\d+\.\d+)",
    method=method,
    left_out=("tests/bench/names.csv",),
)
