"""Which servers take the PROXY protocol, version 2, over UDP, TCP and DoT, and do they believe the announced address?

    .venv/bin/python benches/proxy_protocol.py [SERVER...] [--suite SUITE] [--write]

Needs root, and each server in the cache (`dnsrig servers install`). Each is started in a network namespace of this
program, with a rule that admits clients of 192.0.2.0/24 and none of 198.51.100.0/24. It is asked for a client of either
prefix, and without a header. Over DoT the header goes before the handshake, and if that fails, inside TLS. `--write`
makes docs/reference/proxy-protocol.md.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import dns.exception
import dns.message
import dns.rcode
from smoke import add_parts, parser

from dnsrig.servers import debian, keys

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from generate import table  # type: ignore[import-not-found]

PAGE = Path(__file__).parents[1] / "docs/reference/proxy-protocol.md"
NAME = "www.example.com"
INSIDE, OUTSIDE = IPv4Address("192.0.2.1"), IPv4Address("198.51.100.1")
HERE = "127.0.0.1"
PORT, TLS_PORT = 8053, 8853
"""Ports on which a server takes the header. A server that has ports without it has them elsewhere."""
WAIT_S = 0.7
APART_S = 0.1
"""Between a header inside TLS and the query: a server may not look again at what came with the header."""
START_LIMIT_S = 8.0
ZONE = """$ORIGIN example.com.
$TTL 60
@ SOA ns.example.com. hostmaster.example.com. 1 60 60 60 60
@ NS ns.example.com.
ns A 192.0.2.53
www A 192.0.2.99
"""


SCHEMA = "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
ROWS = """
INSERT INTO domains (id, name, type) VALUES (1, 'example.com', 'NATIVE');
INSERT INTO records (domain_id, name, type, content, ttl) VALUES
  (1, 'example.com', 'SOA', 'ns.example.com hostmaster.example.com 1 60 60 60 60', 60),
  (1, 'www.example.com', 'A', '192.0.2.99', 60);
"""
"""The zone in the database of PowerDNS, whose package has no other backend."""


@dataclass(frozen=True)
class Tried:
    """How a server is set up. Texts are templates: ``{folder}`` has the files."""

    title: str
    package: str
    command: str
    files: Mapping[str, str]
    version: str
    """Package that has the version."""
    how: str
    """The setting, for readers."""
    transports: tuple[str, ...] = ("udp", "tcp", "dot")
    has_rule: bool = True
    """Whether its configuration has a rule for clients."""


SERVERS = {
    "bind": Tried(
        "BIND",
        "bind",
        "named -g -c {folder}/named.conf",
        {
            "named.conf": """
tls served {{ key-file "{folder}/tls-key.pem"; cert-file "{folder}/tls-certificate.pem"; }};
options {{ directory "{folder}"; pid-file none; session-keyfile none; recursion no; allow-proxy {{ any; }};
  listen-on port 8053 proxy plain {{ 127.0.0.1; }}; listen-on port 8853 proxy plain tls served {{ 127.0.0.1; }};
  listen-on-v6 {{ none; }}; allow-query {{ 192.0.2.0/24; }}; }};
controls {{ }};
zone "example.com" {{ type primary; file "{folder}/zone"; }};
"""
        },
        "bind9",
        "`listen-on … proxy plain`, `allow-proxy`",
    ),
    "nsd": Tried(
        "NSD",
        "nsd",
        "nsd -d -c {folder}/nsd.conf",
        {
            "nsd.conf": """
server:
    ip-address: 127.0.0.1@8053
    ip-address: 127.0.0.1@8853
    proxy-protocol-port: 8053
    proxy-protocol-port: 8853
    tls-port: 8853
    tls-service-key: "{folder}/tls-key.pem"
    tls-service-pem: "{folder}/tls-certificate.pem"
    username: ""
    chroot: ""
    zonelistfile: "{folder}/zone.list"
    xfrdfile: "{folder}/xfrd.state"
    xfrdir: "{folder}"
    pidfile: ""
remote-control:
    control-enable: no
zone:
    name: example.com
    zonefile: "{folder}/zone"
    allow-query: 192.0.2.0/24 NOKEY
"""
        },
        "nsd",
        "`proxy-protocol-port`",
    ),
    "knot": Tried(
        "Knot DNS",
        "knot",
        "knotd -c {folder}/knot.conf",
        {
            "knot.conf": """
server:
    rundir: {folder}
    listen: 127.0.0.1@8053
    listen-tls: 127.0.0.1@8853
    cert-file: {folder}/tls-certificate.pem
    key-file: {folder}/tls-key.pem
    proxy-allowlist: 127.0.0.1
database:
    storage: {folder}
log:
  - target: stderr
    any: info
mod-queryacl:
  - id: inside
    address: 192.0.2.0/24
zone:
  - domain: example.com
    file: {folder}/zone
    module: mod-queryacl/inside
"""
        },
        "knot",
        "`proxy-allowlist`",
    ),
    "powerdns": Tried(
        "PowerDNS",
        "powerdns",
        "pdns_server --config-dir={folder}",
        {
            "pdns.conf": """
launch=gsqlite3
gsqlite3-database={folder}/zones.sqlite3
local-address=127.0.0.1
local-port=8053
proxy-protocol-from=127.0.0.1
daemon=no
guardian=no
socket-dir={folder}
setuid=
setgid=
security-poll-suffix=
log-dns-queries=yes
loglevel=6
""",
        },
        "pdns-server",
        "`proxy-protocol-from`",
        ("udp", "tcp"),
        has_rule=False,
    ),
    "unbound": Tried(
        "Unbound",
        "unbound",
        "unbound -d -p -c {folder}/unbound.conf",
        {
            "unbound.conf": """
server:
    interface: 127.0.0.1@8053
    interface: 127.0.0.1@8853
    proxy-protocol-port: 8053
    proxy-protocol-port: 8853
    tls-port: 8853
    tls-service-key: "{folder}/tls-key.pem"
    tls-service-pem: "{folder}/tls-certificate.pem"
    access-control: 0.0.0.0/0 refuse
    access-control: 192.0.2.0/24 allow
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: ""
    use-syslog: no
    local-data: "www.example.com. A 192.0.2.99"
"""
        },
        "unbound",
        "`proxy-protocol-port`",
    ),
    "powerdns-recursor": Tried(
        "PowerDNS Recursor",
        "powerdns-recursor",
        "pdns_recursor --config-dir={folder} --daemon=no",
        {
            "recursor.yml": """
incoming:
  listen: [127.0.0.1]
  port: 8053
  allow_from: [192.0.2.0/24]
  proxy_protocol_from: [127.0.0.1]
recursor:
  socket_dir: {folder}
  auth_zones: [{{zone: example.com, file: {folder}/zone}}]
"""
        },
        "pdns-recursor",
        "`incoming.proxy_protocol_from`",
        ("udp", "tcp"),
    ),
    "knot-resolver": Tried(
        "Knot Resolver",
        "knot-resolver",
        "kresd -n -c {folder}/kresd.conf {folder}",
        {
            "kresd.conf": """
log_target('stderr')
net.tls('{folder}/tls-certificate.pem', '{folder}/tls-key.pem')
net.listen('127.0.0.1', 8053, {{ kind = 'dns' }})
net.listen('127.0.0.1', 8853, {{ kind = 'tls' }})
net.proxy_allowed({{ '127.0.0.1' }})
modules = {{ 'hints', 'view' }}
hints['www.example.com.'] = '192.0.2.99'
view:addr('198.51.100.0/24', policy.all(policy.REFUSE))
"""
        },
        "knot-resolver6",
        "`net.proxy_allowed`",
    ),
    "dnsdist": Tried(
        "dnsdist",
        "dnsdist",
        "dnsdist --supervised --disable-syslog -C {folder}/dnsdist.conf",
        {
            "dnsdist.conf": """
setLocal('127.0.0.1:8053')
addTLSLocal('127.0.0.1:8853', '{folder}/tls-certificate.pem', '{folder}/tls-key.pem',
  {{ proxyProtocolOutsideTLS = true }})
setACL({{ '192.0.2.0/24', '127.0.0.1/32' }})
setProxyProtocolACL({{ '127.0.0.1/32' }})
setProxyProtocolApplyACLToProxiedClients(true)
setSecurityPollSuffix('')
addAction(AllRule(), SpoofAction('192.0.2.99'))
"""
        },
        "dnsdist",
        "`setProxyProtocolACL`",
    ),
}


def header(client: IPv4Address, *, stream: bool, port: int) -> bytes:
    """A header of version 2 for a client at port 4000."""
    family = 0x11 if stream else 0x12
    ends = client.packed + IPv4Address(HERE).packed + struct.pack("!HH", 4000, port)
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", 0x21, family, len(ends)) + ends


def read_answer(connection: socket.socket) -> bytes:
    """The next message of a connection; what came if it ends."""
    found = b""
    while len(found) < 2 or len(found) < 2 + int.from_bytes(found[:2], "big"):
        if not (more := connection.recv(4096)):
            break
        found += more
    return found[2:]


def over_tls(plain: socket.socket) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["dot"])
    return context.wrap_socket(plain)


def ask(transport: str, client: IPv4Address | None, *, inside_tls: bool = False) -> str:
    """The rcode of the answer, or the reason why there is none. ``client``: the address that the header announces."""
    query = dns.message.make_query(NAME, "A").to_wire()
    port = TLS_PORT if transport == "dot" else PORT
    first = header(client, stream=transport != "udp", port=port) if client else b""
    try:
        if transport == "udp":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.settimeout(WAIT_S)
                asking.connect((HERE, port))
                asking.send(first + query)
                answer = asking.recv(4096)
        else:
            framed = len(query).to_bytes(2, "big") + query
            with contextlib.closing(socket.create_connection((HERE, port), timeout=WAIT_S)) as plain:
                if transport == "tcp":
                    plain.sendall(first + framed)
                    answer = read_answer(plain)
                else:
                    plain.sendall(b"" if inside_tls else first)
                    with over_tls(plain) as encrypted:
                        if inside_tls:
                            encrypted.sendall(first)
                            time.sleep(APART_S)
                        encrypted.sendall(framed)
                        answer = read_answer(encrypted)
        return dns.rcode.to_text(dns.message.from_wire(answer).rcode())
    except (OSError, dns.exception.DNSException) as error:
        return "silent" if isinstance(error, TimeoutError) else "closed"


@contextlib.contextmanager
def started(tried: Tried, root: Path, folder: Path) -> Iterator[Callable[[], str]]:
    """Start the server in its root file system. Gives a function for its log."""
    inside = "/mnt"
    (folder / "zone").write_text(ZONE)
    keys.make().write(folder, private=True)
    if (schema := root / SCHEMA).exists():
        with contextlib.closing(sqlite3.connect(folder / "zones.sqlite3")) as database:
            database.executescript(schema.read_text() + ROWS)
    for name, text in tried.files.items():
        (folder / name).write_text(text.format(folder=inside))
    script = f"mount --bind {folder} {root}{inside} && mount --bind /dev {root}/dev && mount -t proc proc {root}/proc"
    command = f"{script} && exec chroot {root} {tried.command.format(folder=inside)}"
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(["unshare", "--mount", "sh", "-c", command], stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while server.poll() is None and ask("udp", INSIDE) != "NOERROR" and time.monotonic() < deadline:
            time.sleep(0.1)
        yield lambda: log.read_text(errors="replace")
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(5)
        server.kill()
        server.wait()


def verdict(transport: str, *, has_rule: bool) -> str:
    """What a server does with the header over a transport, in words."""
    where = ""
    found = {client: ask(transport, client) for client in (INSIDE, OUTSIDE)}
    if transport == "dot" and found[INSIDE] != "NOERROR":
        found = {client: ask(transport, client, inside_tls=True) for client in (INSIDE, OUTSIDE)}
        where = "inside TLS, "
    if found[INSIDE] != "NOERROR":
        return f"refuses ({found[INSIDE]})"
    without = ask(transport, None)
    demanded = "" if without not in ("silent", "closed") else ", demanded"
    believed = ""
    if has_rule:
        believed = ", in rules" if found[OUTSIDE] != "NOERROR" else ", not in rules"
    return f"accepts{demanded}{believed}" if not where else f"accepts {where.rstrip(', ')}{demanded}{believed}"


def row(tried: Tried, suite: str) -> list[object]:
    root = debian.roots(suite, tried.package)[-1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with started(tried, root.path, folder) as log:
            cells = {
                transport: verdict(transport, has_rule=tried.has_rule) if transport in tried.transports else "no DoT"
                for transport in ("udp", "tcp", "dot")
            }
            if any(cell.startswith("refuses") for cell in cells.values()):
                print(log()[-2000:], file=sys.stderr)
            if not tried.has_rule:
                cells = {
                    t: f"{cell}, in its log" if str(INSIDE) in log() and "accepts" in cell else cell
                    for t, cell in cells.items()
                }
    version = root.packages.get(tried.version, "?").partition(":")[2] or root.packages.get(tried.version, "?")
    return [f"{tried.title} {version.partition('-')[0]}", tried.how, *cells.values()]


PROSE = """\
# Servers and the PROXY protocol

`benches/proxy_protocol.py` tries each server of Debian {suite} with a header of version 2, from a client that its rule
for clients admits, and from a client that it does not.

{table}
*accepts*: it answers a query with a header. *demanded*: it does not answer a query without a header on that port, or
from that address. *in rules*: its rule for clients sees the announced address. Over DoT the header goes before the TLS
handshake, unless the table states otherwise. A header inside TLS is sent 0.1 s before the query: Unbound 1.26.2 does
not answer a query in the same TLS record. Knot DNS takes the header over UDP only. PowerDNS has no rule for clients, so
its log of queries is read instead.

BIND 9.20.30 as a resolver closes some TCP connections with a header before it answers: 10 to 17 of 100 queries were
lost in three runs, and none in two runs without the header.
"""


def main() -> None:
    asking = parser(__doc__)
    add_parts(asking, SERVERS)
    asking.add_argument("--suite", default="forky")
    asking.add_argument("--write", action="store_true", help="write docs/reference/proxy-protocol.md")
    chosen = asking.parse_args()
    if os.environ.get("PROXY_PROTOCOL_APART") is None:
        os.environ["PROXY_PROTOCOL_APART"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    rows = [row(SERVERS[name], chosen.suite) for name in chosen.parts]
    found = table(["server", "setting", "UDP", "TCP", "DoT"], rows)
    print(found)
    if chosen.write:
        PAGE.write_text(PROSE.format(suite=chosen.suite, table=found))


if __name__ == "__main__":
    main()
