"""NSD, from 4.1 on."""

from __future__ import annotations

from dnsrig.servers.builds.recipe import AUTOTOOLS, Method, Recipe, Tree

_LIBRARIES = ("bison", "flex", "libevent-dev", "libssl-dev")
_DNSTAP = ("libfstrm-dev", "libprotobuf-c-dev", "protobuf-c-compiler")
"""It is built in by default from 4.13 on."""
_SCRIPT = """\
autoreconf -fi
./configure --prefix="$PREFIX" --with-configdir="$PREFIX/etc" --with-user=root "$@"
make -j"$JOBS"
make install
"""


def method(tree: Tree) -> Method:
    return Method("bookworm", (*AUTOTOOLS, *_LIBRARIES, *_DNSTAP), _SCRIPT)


RECIPE = Recipe(
    repository="https://github.com/NLnetLabs/nsd.git",
    markers=("nsd.c",),
    release=r"NSD_(?P<version>\d+_\d+_\d+)_REL",
    method=method,
    submodules=("simdzone",),
    left_out=("tpkg",),
)
