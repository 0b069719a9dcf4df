"""PowerDNS Authoritative Server, from 4.4 on, with its backends for SQLite and PostgreSQL."""

from __future__ import annotations

from dnsrig.servers.builds.recipe import AUTOTOOLS, Method, Recipe, Tree

_LIBRARIES = (
    *("bison", "flex", "libboost-dev", "libboost-program-options-dev", "libcurl4-openssl-dev", "liblua5.3-dev"),
    *("libpq-dev", "libsodium-dev", "libsqlite3-dev", "libssl-dev", "python3-yaml", "ragel"),
)
_FILLS_ITS_DATABASES = ("postgresql-client", "sqlite3")
_API = "docs/http-api/swagger/authoritative-api-swagger.yaml"
_SCRIPT = """\
export BUILDER_VERSION={version}
cp {api} pdns/api-swagger.yaml
python3 pdns/convert-yaml-to-json.py {api} pdns/api-swagger.json
autoreconf -fi
./configure --prefix="$PREFIX" --with-modules="gsqlite3 gpgsql" --without-dynmodules "$@"
for folder in ext modules pdns; do make -C "$folder" -j"$JOBS"; done
for folder in modules pdns; do make -C "$folder" install; done
"""
"""The description of the API is made beforehand, because its own rule would fetch Python packages. The folder with the
documentation is not built."""


def method(tree: Tree) -> Method:
    version = tree.release("auth-*").removeprefix("auth-") or "0"
    return Method(
        "bookworm",
        (*AUTOTOOLS, *_LIBRARIES, *_FILLS_ITS_DATABASES),
        _SCRIPT.format(version=version, api=_API),
    )


RECIPE = Recipe(
    repository="https://github.com/PowerDNS/pdns.git",
    markers=("pdns/convert-yaml-to-json.py",),
    release=r"auth-(?P<version>(?:4\.[4-9]|[5-9]\.\d+)\.\d+)",
    method=method,
    left_out=("regression-tests", "regression-tests.api", "regression-tests.recursor", "regression-tests.dnsdist"),
)
