"""Keys for zone transfers, new for each trial: a TSIG secret, and a certificate for XoT.

TSIG is hmac-sha256 (RFC 8945 §6), TLS keys are ECDSA on P-256 (RFC 9103 asks for TLS 1.3, RFC 8446 §9.1 makes that
curve mandatory). Generating both takes a few milliseconds.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dnsrig import outputs

TSIG_NAME = "dnsrig-transfer"
TSIG_ALGORITHM = "hmac-sha256"
TLS_NAME = "primary.dnsrig.example"
"""The name in the certificate, which secondaries check (strict TLS, RFC 9103 §9.3)."""
XOT_PORT = 853
HTTPS_PORT = 443
CERTIFICATE_FILE = "tls-certificate.pem"
PRIVATE_KEY_FILE = "tls-key.pem"
VALID = datetime.timedelta(days=30)


@dataclass(frozen=True)
class TransferKeys:
    """The keys that the servers of one trial share."""

    tsig_secret: str
    """Base64, 256 bits."""
    certificate_pem: bytes
    private_key_pem: bytes
    public_key_pin: str
    """Base64 of the SHA-256 of the certificate's public key (RFC 7858, appendix A)."""

    def write(self, folder: Path, *, private: bool) -> None:
        """Write the certificate to ``folder``; if ``private``, also its key, readable only for its owner."""
        (folder / CERTIFICATE_FILE).write_bytes(self.certificate_pem)
        if private:
            outputs.write_private(folder / PRIVATE_KEY_FILE, self.private_key_pem)


def make() -> TransferKeys:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, TLS_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        # It is its own authority but not a CA: some clients (webpki) accept no CA certificate from a server.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return TransferKeys(
        tsig_secret=base64.b64encode(secrets.token_bytes(32)).decode(),
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        private_key_pem=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        public_key_pin=base64.b64encode(hashlib.sha256(public).digest()).decode(),
    )
