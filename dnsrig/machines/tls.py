"""Certificates with which the scheduler, the workers and the client of a Dask cluster recognise each other.

Dask executes what it receives, so whoever may connect is root on every machine. With TLS, each side of a Dask
connection verifies that the certificate of the other side is signed by the authority of the cluster
(https://distributed.dask.org/en/stable/tls.html). The authority signs one certificate for each role, and its key is
then forgotten: nobody can add a certificate later.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from distributed import Security

Role = Literal["scheduler", "worker", "client"]
ROLES: tuple[Role, ...] = get_args(Role)
ALWAYS = datetime.datetime(2000, 1, 1), datetime.datetime(9999, 12, 31)
"""For certificates that nobody keeps: the clocks of machines may be wrong."""


@dataclass(frozen=True)
class Keys:
    """What one role has, as PEM: the certificates of the authority and of the role, and the private key of the role."""

    authority: str
    certificate: str
    private_key: str


def make(valid: tuple[datetime.datetime, datetime.datetime]) -> dict[Role, Keys]:
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
