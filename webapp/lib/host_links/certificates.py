"""Certificates that this installation makes for its own connections between hosts.

A policy server's is its own authority: env workers get it with their assignment and trust nothing else. Where
hosts join, the installation's authority signs; a host trusts it by the fingerprint in its join token.
"""

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from training.outgoing.secret_store import stored_secret

AUTHORITY_DAYS = 3650
HASH = hashes.SHA256()

CLOCKS_DIFFER = datetime.timedelta(days=1)
"""How far the clocks of two hosts may differ before a new certificate is refused."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM texts."""

    certificate: str
    key: str


def make_self_signed(name: str, *, days: int) -> KeyPair:
    """For a server that is reached by `name`, a host name or an IP address."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject("Deskhand")
    return _pem(_builder(subject, subject, key, days, is_authority=True, names=[name]).sign(key, HASH), key)


@dataclass(frozen=True, slots=True)
class Authority:
    """This installation's own certificate authority; its key never leaves the host of the web."""

    certificate: str
    """PEM."""
    key: str
    """PEM."""

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The one kept in `folder`, made on first use."""
        both = stored_secret(folder / "hosts_authority", make=_new_authority)
        certificate, end, key = both.partition("-----END CERTIFICATE-----\n")
        return cls(certificate + end, key)

    @property
    def fingerprint(self) -> str:
        """sha256 of the certificate, hexadecimal."""
        return fingerprint_of(self.certificate)

    def issue(self, name: str, *, days: int) -> KeyPair:
        """For one of our servers that is reached by `name`."""
        issuer = x509.load_pem_x509_certificate(self.certificate.encode())
        signing = serialization.load_pem_private_key(self.key.encode(), password=None)
        assert isinstance(signing, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), issuer.subject, key, days, is_authority=False, names=[name])
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
        return _pem(builder.add_extension(identifier, critical=False).sign(signing, HASH), key)


def fingerprint_of(certificate: str) -> str:
    """sha256 of a PEM certificate, hexadecimal. Raises ValueError when it is none."""
    return x509.load_pem_x509_certificate(certificate.encode()).fingerprint(HASH).hex()


def first_certificate(text: str) -> str:
    """The first PEM certificate of a text, encoded anew. Raises ValueError when there is none."""
    certificate = x509.load_pem_x509_certificate(text.encode())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def context_trusting(authority: str) -> ssl.SSLContext:
    """For a client that trusts only this authority (PEM), or with "" those of the system."""
    return ssl.create_default_context(cadata=authority or None)


def _new_authority() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject("Deskhand's own authority")
    builder = _builder(subject, subject, key, AUTHORITY_DAYS, is_authority=True, names=[])
    made = _pem(builder.sign(key, HASH), key)
    return made.certificate + made.key


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    days: int,
    *,
    is_authority: bool,
    names: Sequence[str],
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    length = 0 if is_authority else None
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=length), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(_names(names)), critical=False)
    return builder


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


def _names(names: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found
