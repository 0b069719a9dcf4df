"""Who can connect to a Dask cluster: its certificates, and listeners that let in everybody who reaches them.

Dask executes what it receives, so whoever can connect is root on every machine. With TLS, each side of a Dask
connection verifies that the certificate of the other side is signed by the authority of the cluster
(https://distributed.dask.org/en/stable/tls.html). The authority signs one certificate for each role, and its key is
then forgotten: nobody can add a certificate later.

Each process of the cluster is asked for its own listeners, because the scheduler knows only the addresses at which its
workers can be reached: a worker that is known as ``tcp://127.0.0.1:4711`` may listen on every address of its machine,
and the HTTP servers of Dask ask for no certificate. Whether a listener asks for one is tried, not read from settings.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dnsrig.errors import DnsrigError, UsageError

if TYPE_CHECKING:
    from distributed import Security

Role = Literal["scheduler", "worker", "client"]
ROLES: tuple[Role, ...] = get_args(Role)
ALWAYS = datetime.datetime(2000, 1, 1), datetime.datetime(9999, 12, 31)
"""For certificates that nobody keeps: the clocks of machines may be wrong."""


ANSWER_LIMIT_S = 5.0
"""Dask's HTTP server never answers to TLS. An event loop that answers may be busy for a second."""
ASKS = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
"""How OpenSSL calls the alert of a server to a client that has no certificate (RFC 8446 §4.4.2.4 and §6.2)."""
HINT = (
    "start scheduler and workers with files of `dnsrig machines certificates` and with "
    "--dashboard-address 127.0.0.1:0, as docs/how-to/machines.md shows"
)


@dataclass(frozen=True)
class Keys:
    """What one role has, as PEM: the certificates of the authority and of the role, and the private key of the role."""

    authority: str
    certificate: str
    private_key: str


def make_keys(valid: tuple[datetime.datetime, datetime.datetime]) -> dict[Role, Keys]:
    """Make an authority, and a certificate for each role. A client only connects, so it cannot act as a scheduler."""
    authority_key, authority_name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
    authority = (
        _certificate(authority_name, authority_name, authority_key, valid)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    made = dict[Role, Keys]()
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        listens = [] if role == "client" else [ExtendedKeyUsageOID.SERVER_AUTH]
        certificate = (
            _certificate(_name(role), authority_name, key, valid)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, *listens]), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        made[role] = Keys(_pem(authority), _pem(certificate), _private_pem(key))
    return made


def security(keys: Mapping[Role, Keys]) -> Security:
    """Make the settings of a connection for a process that has the roles of ``keys``."""
    from distributed import Security

    own = {f"tls_{role}_cert": one.certificate for role, one in keys.items()}
    own |= {f"tls_{role}_key": one.private_key for role, one in keys.items()}
    return Security(require_encryption=True, tls_ca_file=next(iter(keys.values())).authority, **own)


def _name(role: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"dnsrig {role}")])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid: tuple[datetime.datetime, datetime.datetime],
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer,
        subject,
        key.public_key(),
        x509.random_serial_number(),
        not_valid_before=valid[0],
        not_valid_after=valid[1],
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


class NotKnown(DnsrigError):
    """A process did not say what it listens on."""


def check(client: Any, workers: Mapping[str, Mapping[str, Any]], scheduler: str = "") -> None:
    """Refuse open listeners of ``workers`` and their nannies, and of the scheduler if its address is given.

    ``workers`` is what the scheduler knows about them, by address. Raises `NotKnown` if a process does not answer.
    """
    nannies = {address: told for address, told in workers.items() if told.get("nanny")}
    found = list[str]()
    for kind, known in (("worker", workers), ("nanny", nannies)):
        answers = client.run(open_here, workers=[*known], nanny=kind == "nanny", on_error="return")
        for address, told in known.items():
            reached = told["nanny"] if kind == "nanny" else address
            found += exposed(f"{kind} {told['name']}", reached, answers.get(address))
    if scheduler:
        found += exposed("scheduler", scheduler, _asked_scheduler(client))
    if found:
        raise UsageError(
            f"other machines can connect to this cluster without a certificate: {', '.join(found)}", hint=HINT
        )


def exposed(process: str, reached: str, answer: list[str] | Exception | None) -> list[str]:
    """The open listeners of a process, each with the name of the process.

    ``answer`` is what `open_here` returns there. ``reached`` is the address that the scheduler knows. It counts, too,
    if no listener of the process has its port: then something else passes connections on.
    """
    if not isinstance(answer, list):
        raise NotKnown(
            f"the listeners of the {process} are not known: {answer or 'it does not answer'}",
            hint="all processes of a cluster need the same wheel of dnsrig: install it there, and start them again",
        ) from answer
    parts = urlsplit(reached)
    is_safe = parts.scheme == "tls" or is_loopback(parts.hostname or "")
    is_named = any(one.endswith(f":{parts.port}") for one in answer)
    return [f"{one} ({process})" for one in [*answer, *([] if is_safe or is_named else [reached])]]


def _asked_scheduler(client: Any) -> list[str] | Exception:
    try:
        found: list[str] = client.run_on_scheduler(open_here)
        return found
    except Exception as error:
        return error


async def open_here() -> list[str]:
    """The listeners of the process that calls this to which any machine can connect without a certificate."""
    return await asyncio.to_thread(lambda: [joined(*one) for one in _listening() if is_open(*one)])


def is_open(host: str, port: int) -> bool:
    """Whether a listener of this machine accepts connections from another machine without a certificate."""
    if is_loopback(host):
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    any_address = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    try:
        with (
            socket.create_connection((any_address.get(host, host), port), ANSWER_LIMIT_S) as connection,
            context.wrap_socket(connection) as secured,
        ):
            secured.recv(1)  # with TLS 1.3, the server refuses after the handshake of the client
    except ssl.SSLError as error:
        return error.reason != ASKS
    except OSError:
        return True
    return True


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listening() -> Iterator[tuple[str, int]]:
    import psutil  # type: ignore[import-untyped]

    sockets = psutil.Process().net_connections("tcp")
    yield from sorted({(one.laddr.ip, one.laddr.port) for one in sockets if one.status == psutil.CONN_LISTEN})
