"""Who may ask: rules without I/O. The shell around them is `guard`.

A browser also runs other people's pages, and any of them can send requests to this machine. So there is a token, which
only who started the program knows; a cookie that no other site's page makes a browser send (SameSite=Strict, RFC
6265bis); and the Host header must be ours, because a name of somebody else may point here (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, no eval: the charts' expressions are interpreted (vega-interpreter)."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BODY_BYTES = 32_768
"""Largest form: a note in its percent encoding."""


def new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Access:
    """Where the program listens, and the token that it wants."""

    token: str = field(repr=False)
    host: str
    port: int

    @property
    def cookie(self) -> str:
        """Its name: cookies do not tell ports apart (RFC 6265, 8.5)."""
        return f"dnsrig-{self.port}"

    @property
    def form_token(self) -> str:
        """What a form must bring back: pages have it, other sites do not."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def is_form_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.form_token.encode())

    def is_host(self, header: str) -> bool:
        """Whether a Host header names this server: by the name it was given, as localhost, or, where it listens for
        others, by an address. A stranger's name is refused."""
        name, port = _split(header)
        if port != str(self.port):
            return False
        return name in {"localhost", "127.0.0.1", "::1", self.host} or (not self.is_loopback and _is_address(name))

    def is_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a form was sent from a page of ours: browsers say so in Origin (RFC 6454)."""
        return headers.get("origin", "") == f"http://{headers.get('host', '')}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/?token={self.token}"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _split(header: str) -> tuple[str, str]:
    """A Host header as name and port; the port of HTTP where it names none."""
    if header.startswith("["):
        name, _, rest = header[1:].partition("]")
        return name, rest.removeprefix(":") or "80"
    name, _, port = header.partition(":")
    return name.lower(), port or "80"
