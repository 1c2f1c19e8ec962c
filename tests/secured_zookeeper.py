"""A real ZooKeeper that also listens with TLS and knows one SASL user, and the settings with which a broker reaches it."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12

from headrace.testing.zookeeper import ZooKeeperServer, free_port

JAAS = """Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_broker="secret";
};
"""


class SecuredZooKeeper:
    """Not started yet: `server` is a context manager."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        self.trusted, self.strange = directory / "ca.pem", directory / "strange.pem"
        authority.cert_pem.write_to_path(self.trusted)
        trustme.CA().cert_pem.write_to_path(self.strange)
        self.certificate = directory / "broker.pem"
        authority.issue_cert("broker").private_key_and_cert_chain_pem.write_to_path(self.certificate)
        server = directory / "server.p12"
        server.write_bytes(_pkcs12(authority.issue_cert("localhost", "127.0.0.1")))
        jaas = directory / "jaas.conf"
        jaas.write_text(JAAS)
        self.tls_port = free_port()
        self.server = ZooKeeperServer(
            directory / "zookeeper",
            settings=(
                f"secureClientPort={self.tls_port}\nsecureClientPortAddress=127.0.0.1\n"
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"
                f"ssl.keyStore.location={server}\nssl.keyStore.type=PKCS12\nssl.keyStore.password=secret\n"
                f"ssl.trustStore.location={self.trusted}\nssl.trustStore.type=PEM\nssl.clientAuth=want\n"
            ),
            options=(f"-Djava.security.auth.login.config={jaas}",),
        )

    def tls(self) -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": str(self.trusted),
        }

    @property
    def tls_hosts(self) -> str:
        return f"localhost:{self.tls_port}"


def _pkcs12(leaf: trustme.LeafCert) -> bytes:
    """As Java likes it: trustme's PEM holds the key in a form that Java does not read."""
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(
        b"server", key, certificate, None, serialization.BestAvailableEncryption(b"secret")
    )


def login(password: str = "secret", scheme: str = "DIGEST") -> dict[str, str]:
    return {
        "headrace.zookeeper.user": "broker",
        "headrace.zookeeper.password": password,
        "headrace.zookeeper.login.scheme": scheme,
        "zookeeper.set.acl": "true",
    }
