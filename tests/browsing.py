"""A browsed folder of synthetic runs, and a client that has the token."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient
from synthetic import Plan, build

from dnsrig.browse.app import application
from dnsrig.browse.index import Index
from dnsrig.browse.scan import run_id
from dnsrig.browse.security import Access

ADDRESS = "http://127.0.0.1:8053"
ACCESS = Access("the-token", "127.0.0.1", 8053)
HOSTILE = "</script><script>alert(1)</script>\" onload='alert(2)' ${alert(3)} {{ 7 * 7 }} \u202ertl"
"""Whatever is shown of a run may be this."""
FIRST, SECOND = "synthetic/20250101T120000Z-aaaa", "synthetic/20250102T120000Z-bbbb"


def runs(root: Path) -> Path:
    """Two runs to compare, and one that is damaged."""
    small = Plan(zones=[50], repeats=2)
    build(root / FIRST, small)
    build(root / SECOND, Plan(zones=[50], repeats=2, seed=2, run=SECOND))
    broken = root / "broken/20250103T120000Z-cccc"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text('{"run": ')
    return root


def client(root: Path, cache: Path, *, enter: bool = True) -> TestClient:
    app = application(root, ACCESS, Index(root, cache / "index.sqlite"))
    found = TestClient(app, base_url=ADDRESS, raise_server_exceptions=True)
    if enter:
        assert found.get("/", params={"token": ACCESS.token}).status_code == 200
    return found


def address(path: str, *more: object) -> str:
    """Of a run, by its path below the browsed folder."""
    return "/".join(["/run", run_id(path), *map(str, more)])


def form_token(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found
    return found.group(1)
