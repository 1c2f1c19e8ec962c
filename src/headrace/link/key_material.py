"""Keys and certificates from where Kafka's settings say they are: PEM files, PEM text or PKCS12 files; JKS is refused with its remedy.

What a file holds decides how it is read. `ssl.keystore.type` and `ssl.truststore.type` must agree with it, except that JKS, Kafka's
default, stands for anything.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE = b"\x30"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)

INSTALL = "pip install 'headrace[security]'"


class KeyMaterialError(ValueError):
    """The sentence for the user; it begins with the setting's name."""


class StoreKind(Enum):
    PEM = "PEM"
    PKCS12 = "PKCS12"
    JKS = "JKS"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and the chain of its certificate, the owner's first, as PEM."""

    key: bytes = field(repr=False)
    chain: bytes
    password: str | None = field(default=None, repr=False)
    """Of the key, if it is encrypted."""
    source: str = ""
    """What to call it in messages: the setting, and the file if there is one."""

    @property
    def certificate(self) -> bytes:
        """The owner's, DER. Call it when the pair is known to be good."""
        first = _CERTIFICATE.search(self.chain)
        assert first is not None
        return ssl.PEM_cert_to_DER_cert(first[0].decode())

    def load_into(self, context: ssl.SSLContext) -> None:
        """KeyMaterialError when key and certificate do not fit, or the password is wrong."""
        with _as_file(self.key + b"\n" + self.chain + b"\n") as path:
            try:
                context.load_cert_chain(path, password=self.password or "")
            except ssl.SSLError as error:
                raise KeyMaterialError(f"{self.source}: {self._complaint(error)}") from None

    def _complaint(self, error: ssl.SSLError) -> str:
        if error.reason == "KEY_VALUES_MISMATCH":
            return (
                "the private key does not match the certificate; the first certificate must be the key's own."
            )
        if b"ENCRYPTED" in self.key:
            if self.password is None:
                return "the private key is encrypted; set ssl.key.password."
            return "the private key cannot be decrypted; check ssl.key.password."
        if error.reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "EE_MD_TOO_WEAK"):
            return (
                "the key or its signature is too weak; use RSA with at least 2048 bits, or EC, and SHA-256."
            )
        return f"the key and its certificate cannot be used ({error.reason or error})."


def kind_of(data: bytes) -> StoreKind | None:
    """What a store is by its content; None for none that is known."""
    if data.startswith(_JAVA_MAGIC):
        return StoreKind.JKS
    if data.startswith(_DER_SEQUENCE):
        return StoreKind.PKCS12
    return StoreKind.PEM if b"-----BEGIN " in data else None


def read_key_store(
    location: str,
    store_password: str | None,
    key_password: str | None,
    prefix: str = "",
    named: str | None = None,
) -> KeyPair:
    """The first private key in a file, with its certificate chain; `named` is what ssl.keystore.type says."""
    source = f"{prefix}ssl.keystore.location={location}"
    data = _read(location, source)
    if _checked_kind(data, location, source, f"{prefix}ssl.keystore.type", named) is StoreKind.PKCS12:
        return _pkcs12_pair(data, store_password, key_password, source, prefix)
    return pem_pair(data, data, key_password, source, prefix)


def pem_pair(key: bytes, chain: bytes, password: str | None, source: str, prefix: str = "") -> KeyPair:
    found = _KEY.search(key)
    certificates = _CERTIFICATE.findall(chain)
    if found is None:
        raise KeyMaterialError(
            f"{source}: there is no private key (-----BEGIN PRIVATE KEY-----); it stands in the same place as the certificate "
            f"chain, or in {prefix}ssl.keystore.key."
        )
    if not certificates:
        raise KeyMaterialError(f"{source}: there is no certificate (-----BEGIN CERTIFICATE-----).")
    return KeyPair(_tidy(found[0]), b"\n".join(map(_tidy, certificates)), password, source)


def read_trust_store(location: str, password: str | None, prefix: str = "", named: str | None = None) -> str:
    """The certificates of the trusted authorities, as PEM; `named` is what ssl.truststore.type says."""
    source = f"{prefix}ssl.truststore.location={location}"
    data = _read(location, source)
    if _checked_kind(data, location, source, f"{prefix}ssl.truststore.type", named) is StoreKind.PKCS12:
        return _pkcs12_authorities(data, password, source, prefix)
    return pem_authorities(data, source)


def pem_authorities(data: bytes, source: str) -> str:
    certificates = _CERTIFICATE.findall(data)
    if not certificates:
        raise KeyMaterialError(f"{source}: there is no certificate (-----BEGIN CERTIFICATE-----).")
    return b"\n".join(map(_tidy, certificates)).decode("ascii", "replace") + "\n"


def _tidy(block: bytes) -> bytes:
    """Lines as OpenSSL wants them: text in a setting often has blanks in their place."""
    _, begin, body, end, _ = re.split(rb"(-----[A-Z ]+-----)", block)
    if b":" in body:  # headers of a key in an old form
        return block
    packed = b"".join(body.split())
    return b"\n".join((begin, *(packed[start : start + 64] for start in range(0, len(packed), 64)), end))


def trust(context: ssl.SSLContext, authorities: str, source: str) -> None:
    """Trust these certificates as Java does: any of them, and not only those that signed themselves, ends a chain."""
    try:
        context.load_verify_locations(cadata=authorities)
    except (ssl.SSLError, ValueError) as error:
        raise KeyMaterialError(f"{source}: a certificate cannot be read ({error}).") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _read(location: str, source: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise KeyMaterialError(f"{source}: the file cannot be read: {error.strerror}.") from None


def convert_jks(location: str, source: str, type_setting: str) -> str:
    """The sentence for a JKS file, with the command that makes a PKCS12 file of it."""
    target = str(Path(location).with_suffix(".p12"))
    return (
        f"{source}: {location} is JKS, which only Java reads; convert it with `keytool -importkeystore -srckeystore {location} "
        f"-destkeystore {target} -deststoretype PKCS12`, then give {target} and {type_setting}=PKCS12."
    )


def _checked_kind(data: bytes, location: str, source: str, type_setting: str, named: str | None) -> StoreKind:
    """What the store is, PEM or PKCS12. KeyMaterialError for anything else, and for a type that says something else."""
    wanted = StoreKind.__members__.get((named or StoreKind.JKS.name).strip().upper())
    if wanted is None:
        raise KeyMaterialError(f"{type_setting} is {named}; it is PEM or PKCS12.")
    found = kind_of(data)
    if found is None:
        raise KeyMaterialError(f"{source}: the file holds neither PEM nor PKCS12.")
    if found is StoreKind.JKS:
        raise KeyMaterialError(convert_jks(location, source.partition("=")[0], type_setting))
    if wanted not in (StoreKind.JKS, found):
        raise KeyMaterialError(
            f"{type_setting} is {wanted.name}, but {location} holds {found.name}: correct one of them."
        )
    return found


def _pkcs12(data: bytes, password: str | None, source: str, setting: str) -> object:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise KeyMaterialError(
            f"{source}: reading PKCS12 needs a library: {INSTALL}; or write the store as PEM (openssl pkcs12 -nodes)."
        ) from None
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        remedy = f"check {setting}" if password is not None else f"set {setting}"
        raise KeyMaterialError(f"{source}: the PKCS12 file cannot be opened; {remedy}.") from None


def _pkcs12_pair(
    data: bytes, store_password: str | None, key_password: str | None, source: str, prefix: str
) -> KeyPair:
    store = _pkcs12(data, store_password, source, f"{prefix}ssl.keystore.password")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    assert isinstance(store, PKCS12KeyAndCertificates)
    if store.key is None or store.cert is None:
        raise KeyMaterialError(f"{source}: the PKCS12 file holds no private key with its certificate.")
    pem = serialization.Encoding.PEM
    key = store.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = [store.cert.certificate, *(each.certificate for each in store.additional_certs)]
    return KeyPair(key, b"".join(each.public_bytes(pem) for each in chain), None, source)


def _pkcs12_authorities(data: bytes, password: str | None, source: str, prefix: str) -> str:
    store = _pkcs12(data, password, source, f"{prefix}ssl.truststore.password")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    assert isinstance(store, PKCS12KeyAndCertificates)
    found = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    if not found:
        raise KeyMaterialError(f"{source}: the PKCS12 file holds no certificate.")
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in found)


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path to `content` for a library that reads files only: in memory where the system can, so that no key reaches a disk."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("key"), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(suffix=".pem") as named:
            named.write(content)
            named.flush()
            yield named.name
