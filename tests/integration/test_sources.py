"""Servers from Debian suites: resolved, built once, and refused with a sentence where there is no such thing."""

from __future__ import annotations

import pytest

from dnsrig.errors import DnsrigError
from dnsrig.servers import all_drivers, debian, sources

pytestmark = pytest.mark.servers


KINDS = sorted(kind for kind, server in all_drivers().items() if server.packages)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_installing_again_changes_nothing(kind: str) -> None:
    first = sources.find(f"{kind}@forky") or sources.install(f"{kind}@forky")
    assert sources.install(f"{kind}@forky") == first == sources.find(f"{kind}@forky")
    assert (root := sources.root(first)) is not None
    assert any(first.version in version for version in first.packages.values()), first.packages
    assert (root / debian.RECORD).is_file()


@pytest.mark.full
def test_suite_that_lacks_the_package() -> None:
    with pytest.raises(DnsrigError, match="Debian forky lacks a package of no-such-server") as caught:
        debian.build("forky", "nothing", ("no-such-server",))
    assert "choose another suite" in caught.value.hint


def test_suite_that_does_not_exist() -> None:
    with pytest.raises(DnsrigError, match="the mirror has no suite 'nosuchsuite'"):
        sources.install("bind@nosuchsuite")
    assert sources.find("bind@nosuchsuite") is None
