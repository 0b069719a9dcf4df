"""A small signed Internet of zone files: the root, one TLD, one zone that is as it must be, and one whose DS in the TLD
is of another key. BIND serves it, each level from an address of its own."""

from __future__ import annotations

import time
from pathlib import Path

import dns.dnssec
import dns.rrset
import dns.zone
from cryptography.hazmat.primitives.asymmetric import ec
from dns.rdtypes.ANY.DNSKEY import DNSKEY
from dns.rdtypes.dnskeybase import Flag

from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE

ADDRESSES = {"root": "198.18.64.1", "tld": "198.18.64.2", "zones": "198.18.64.3"}
NOWHERE = "2001:2:0:3::1"
"""Of every name server as well: nobody answers there."""
GOOD, BROKEN, MISSING = "www.good.lab.", "www.broken.lab.", "nothing.good.lab."
TTL_S = 3600
LIFETIME_S = 86_400

Key = tuple[ec.EllipticCurvePrivateKey, DNSKEY]

ROOT = f"""\
. {TTL_S} IN SOA a.root. admin.root. 1 3600 600 86400 300
. {TTL_S} IN NS a.root.
a.root. {TTL_S} IN AAAA {NOWHERE}
a.root. {TTL_S} IN A {ADDRESSES["root"]}
lab. {TTL_S} IN NS ns.lab.
ns.lab. {TTL_S} IN AAAA {NOWHERE}
ns.lab. {TTL_S} IN A {ADDRESSES["tld"]}
"""
TLD = f"""\
lab. {TTL_S} IN SOA ns.lab. admin.lab. 1 3600 600 86400 300
lab. {TTL_S} IN NS ns.lab.
ns.lab. {TTL_S} IN AAAA {NOWHERE}
ns.lab. {TTL_S} IN A {ADDRESSES["tld"]}
good.lab. {TTL_S} IN NS ns.good.lab.
ns.good.lab. {TTL_S} IN AAAA {NOWHERE}
ns.good.lab. {TTL_S} IN A {ADDRESSES["zones"]}
broken.lab. {TTL_S} IN NS ns.broken.lab.
ns.broken.lab. {TTL_S} IN AAAA {NOWHERE}
ns.broken.lab. {TTL_S} IN A {ADDRESSES["zones"]}
"""
ZONE = f"""\
ZONE {TTL_S} IN SOA ns.ZONE admin.ZONE 1 3600 600 86400 300
ZONE {TTL_S} IN NS ns.ZONE
ns.ZONE {TTL_S} IN AAAA {NOWHERE}
ns.ZONE {TTL_S} IN A {ADDRESSES["zones"]}
www.ZONE {TTL_S} IN A 192.0.2.1
"""
NAMED = """\
options {
    directory "/mnt/tree"; pid-file none; session-keyfile "/mnt/tree/session.key"; listen-on { LISTEN };
    listen-on-v6 { none; }; recursion no; querylog yes;
};
controls { };
logging { channel told { stderr; }; category default { told; }; category queries { told; }; };
"""


def make(folder: Path) -> None:
    """Write zones, the configuration of BIND, the hints and the trust anchor into ``folder``."""
    keys = {name: _key() for name in (".", "lab.", "good.lab.", "broken.lab.")}
    children = {".": ["lab."], "lab.": ["good.lab.", "broken.lab."]}
    texts = {".": ROOT, "lab.": TLD, **{name: ZONE.replace("ZONE", name) for name in ("good.lab.", "broken.lab.")}}
    trusted = {**keys, "broken.lab.": _key()}
    for name, text in texts.items():
        zone = dns.zone.from_text(text, origin=name, relativize=False)
        for child in children.get(name, []):
            ds = dns.dnssec.make_ds(child, trusted[child][1], "SHA256")
            zone.replace_rdataset(child, dns.rrset.from_rdata(child, TTL_S, ds).to_rdataset())
        begin = int(time.time()) - LIFETIME_S
        dns.dnssec.sign_zone(
            zone,
            keys=[keys[name]],
            add_dnskey=True,
            dnskey_ttl=TTL_S,
            inception=begin,
            expiration=begin + 10 * LIFETIME_S,
        )
        (folder / _file(name)).write_text(zone.to_text(relativize=False))
    (folder / HINTS_FILE).write_text(
        f". {TTL_S} IN NS a.root.\na.root. {TTL_S} IN AAAA {NOWHERE}\na.root. {TTL_S} IN A {ADDRESSES['root']}\n"
    )
    (folder / ANCHOR_FILE).write_text(_anchor(keys["."]))
    levels = {"root": ["."], "tld": ["lab."], "zones": ["good.lab.", "broken.lab."]}
    views = [_view(level, zones) for level, zones in levels.items()]
    listen = " ".join(f"{address};" for address in ADDRESSES.values())
    (folder / "named.conf").write_text(NAMED.replace("LISTEN", listen) + "".join(views))


def anchor_of_another_key() -> str:
    """A trust anchor that is not that of the tree."""
    return _anchor(_key())


def _anchor(key: Key) -> str:
    ds = dns.dnssec.make_ds(".", key[1], "SHA256")
    return f". {TTL_S} IN DNSKEY {key[1]}\n. {TTL_S} IN DS {ds}\n"


def _key() -> Key:
    private = ec.generate_private_key(ec.SECP256R1())
    flags = Flag.ZONE | Flag.SEP
    return private, dns.dnssec.make_dnskey(private.public_key(), "ECDSAP256SHA256", flags=flags)  # type: ignore[return-value]


def _file(zone: str) -> str:
    return f"{zone.strip('.') or 'root'}.zone"


def _view(level: str, zones: list[str]) -> str:
    inside = "".join(f'zone "{name}" {{ type primary; file "{_file(name)}"; }}; ' for name in zones)
    return f"view {level} {{ match-destinations {{ {ADDRESSES[level]}; }}; {inside}}};\n"
