"""Certificates, a user and the settings of secured listeners, the same for every broker under measurement."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12

from bench.processes import free_port
from bench.systems.base import Option

USER, PASSWORD = "bench", "bench-password"
LOGIN, MUTUAL = "LOGIN", "MUTUAL"
"""Listeners: TLS with a user's password, and TLS with certificates on both sides."""


@dataclass(frozen=True, slots=True)
class Secured:
    """Files below `place`, and a port for each secured listener."""

    place: Path
    login_port: int
    mutual_port: int

    @classmethod
    def make(cls, place: Path) -> "Secured":
        place.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(place / "ca.pem"))
        client = authority.issue_cert("bench")
        client.cert_chain_pems[0].write_to_path(str(place / "client.pem"))
        client.private_key_pem.write_to_path(str(place / "client.key"))
        (place / "server.p12").write_bytes(_key_store(authority.issue_cert("localhost", "127.0.0.1")))
        return cls(place, free_port(), free_port())

    @property
    def listeners(self) -> str:
        return f"{LOGIN}://127.0.0.1:{self.login_port},{MUTUAL}://127.0.0.1:{self.mutual_port}"

    def settings(self) -> Mapping[str, str]:
        prefix = f"listener.name.{LOGIN.lower()}"
        return {
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{LOGIN}:SASL_SSL,{MUTUAL}:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.place / "server.p12"),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.place / "ca.pem"),
            f"listener.name.{MUTUAL.lower()}.ssl.client.auth": "required",
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
            f"{prefix}.plain.sasl.jaas.config": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        }

    def login(self) -> Mapping[str, Option]:
        """Options of the load program."""
        return {"tls_ca": str(self.place / "ca.pem"), "user": USER, "password": PASSWORD}

    def certificate(self) -> Mapping[str, Option]:
        return {
            "tls_ca": str(self.place / "ca.pem"),
            "certificate": str(self.place / "client.pem"),
            "key": str(self.place / "client.key"),
        }


def _key_store(leaf: trustme.LeafCert) -> bytes:
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption)
