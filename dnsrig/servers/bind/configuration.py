"""named.conf: as dnsrig writes it for an authoritative server and for a resolver, and as named prints its defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dnsrig.servers.formats import template

BEGIN = """\
{% if p.answers_over_tls %}
tls served { key-file "{{ p.private_key }}"; cert-file "{{ p.certificate }}"; };
{% endif %}
options {
    directory "{{ p.seen_state }}";
    pid-file "{{ p.seen_state }}/named.pid";
    session-keyfile "{{ p.seen_state }}/session.key";
{% for address in p.addresses %}
    listen-on{{ "-v6" if address.version == 6 }} port {{ port }} { {{ address }}; };
{% if p.answers_over_tls %}
    listen-on{{ "-v6" if address.version == 6 }} port {{ keys.XOT_PORT }} tls served { {{ address }}; };
{% endif %}
{% endfor %}
"""
"""Beginning of both configurations, with `options` not closed. It needs the placement as `p`, the `port`, and
`keys`."""
AUTHORITATIVE = template(
    """\
{% if p.transfer.tsig %}
key "{{ keys.TSIG_NAME }}" { algorithm {{ keys.TSIG_ALGORITHM }}; secret "{{ p.keys.tsig_secret }}"; };
{% endif %}
{% if p.transfer.tls and p.role == "secondary" %}
tls xot { ca-file "{{ p.certificate }}"; remote-hostname "{{ keys.TLS_NAME }}"; };
{% endif %}
"""
    + BEGIN
    + """\
    recursion no;
    dnssec-validation no;
{% if p.transfer.notify and p.role == "primary" %}
    notify explicit;
    also-notify { {% for address in p.secondaries %}{{ address }}; {% endfor %}};
{% else %}
    notify no;
{% endif %}
    request-ixfr {{ "yes" if p.transfer.ixfr else "no" }};
    allow-query { any; };
    allow-transfer { {{ "none" if p.role == "secondary" else 'key "' + keys.TSIG_NAME + '"' if p.transfer.tsig else "any" }}; };
{% if p.catalog and p.role == "secondary" %}
    catalog-zones { zone "{{ p.catalog.name }}" default-{{ words.primaries }} { {{ primary(p.routes[0]) }} }{% if update_interval is not none %} min-update-interval {{ update_interval }}{% endif %}; };
{% endif %}
{% for name, value in settings.items() %}
    {{ name }} {{ value }};
{% endfor %}
};
controls { };
logging {
    channel standard_error { stderr; severity info; print-time yes; print-category yes; print-severity yes; };
    category default { standard_error; };
{% if p.role == "primary" %}
    category xfer-out { null; };
{% endif %}
};
{% for zone in p.configured_zones %}
{% if p.role == "primary" and p.transfer.updates %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; journal "{{ zone.name }}.jnl"; allow-update { {{ 'key "' + keys.TSIG_NAME + '"' if p.transfer.tsig else "any" }}; }; };
{% elif p.role == "primary" and p.transfer.ixfr %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; ixfr-from-differences yes; journal "{{ zone.name }}.jnl"; };
{% elif p.role == "primary" %}
zone "{{ zone.name }}" { type {{ words.primary }}; file "{{ p.seen_zone_file(zone) }}"; };
{% else %}
{% set route = p.route_of(loop.index0) %}
zone "{{ zone.name }}" { type {{ words.secondary }}; {{ words.primaries }} { {{ primary(route) }} }; file "{{ zone.name }}.db";{% if route.source %} transfer-source{{ "-v6" if route.source.version == 6 }} {{ route.source }};{% endif %} };
{% endif %}
{% endfor %}
"""
)
RESOLVER = template(
    BEGIN
    + """\
    recursion yes;
    allow-query { any; };
    allow-recursion { any; };
    notify no;
{% for name, value in settings.items() %}
    {{ name }} {{ value }};
{% endfor %}
};
controls { };
statistics-channels { inet {{ p.address }} port {{ statistics_port }} allow { any; }; };
logging {
    channel standard_error { stderr; severity info; print-time yes; print-category yes; print-severity yes; };
    category default { standard_error; };
    category lame-servers { null; };
    category dnssec { null; };
};
{% if p.resolving.upstream != "both" %}
server {{ "::/0" if p.resolving.upstream == "ipv4" else "0.0.0.0/0" }} { bogus yes; };
{% endif %}
{% if p.from_hints %}
zone "." { type hint; file "{{ p.seen_hints }}"; };
{% else %}
{# One statement for each zone: with one for all, a resolver that minimises names would query the parent, which has no server. #}
{% for zone in p.zones %}
zone "{{ zone.name }}" { type static-stub; server-addresses { {% for route in p.routes %}{{ route.primary }}; {% endfor %}}; };
{% endfor %}
{% endif %}
{% if p.anchor %}
trust-anchors { . static-key {{ key[0] }} {{ key[1] }} {{ key[2] }} "{{ key[3] }}"; };
{% endif %}
"""
)

TOKEN = re.compile(r'"[^"]*"|/\*.*?\*/|(?:#|//)[^\n]*|[{};]|(?:(?!//|/\*)[^\s{};"#])+', re.DOTALL)
COMMENTS = ("#", "//", "/*")
OPTIONS = "options"
"""The block whose settings are named without it."""
MOST_DEPTH = 20


def printed_defaults(text: str) -> dict[str, str]:
    """Settings from BIND's ``block { name value; };`` by block and name, and settings of ``options`` by name alone. If
    a block has a name several times, the value contains all values.

    >>> printed_defaults('options { # a comment\\n port 53; also { 1; 2; }; }; dnssec-policy "default" { keys { }; };')
    {'port': '53', 'also': '{ 1; 2; }', 'dnssec-policy "default" keys': '{ }'}
    """
    words = (token for token in TOKEN.findall(text) if not token.startswith(COMMENTS))
    found: dict[str, str] = {}
    for block in _statements(" ".join(word.split()) for word in words):
        inner = next((part for part in block if not isinstance(part, str)), [])
        head = " ".join(part for part in block if isinstance(part, str))
        if inner and all(len(entry) == 1 for entry in inner):
            found[head] = _text([inner])
            continue
        for first, *rest in inner:
            name = _text([first]) if head == OPTIONS else f"{head} {_text([first])}"
            found[name] = f"{found[name]}; {_text(rest)}" if name in found else _text(rest)
    return found


Statement = list["str | list[Statement]"]
"""A statement: words, and blocks of statements in braces."""


def _text(parts: Statement) -> str:
    return " ".join(
        part if isinstance(part, str) else " ".join(["{", *(f"{_text(each)};" for each in part), "}"]) for part in parts
    )


def _statements(tokens: Iterator[str], depth: int = 0) -> list[Statement]:
    """The statements up to the brace that ends the block, or to the end."""
    found: list[Statement] = []
    parts: Statement = []
    for token in tokens:
        if token == "{" and depth < MOST_DEPTH:
            parts.append(_statements(tokens, depth + 1))
        elif token in (";", "}"):
            found += [parts] if parts else []
            parts = []
            if token == "}":
                break
        else:
            parts.append(token)
    return found
