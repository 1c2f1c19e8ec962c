"""Certificates for tests: an authority, a broker's key store and clients' ones, as PEM files."""

from pathlib import Path

import trustme


class Certificates:
    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.authority = trustme.CA(organization_name="Headrace Tests")
        self.ca = home / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.broker = self.issue("broker", "localhost", "127.0.0.1")

    def issue(
        self,
        name: str,
        *identities: str,
        authority: trustme.CA | None = None,
        file: str = "",
        **options: object,
    ) -> Path:
        """A PEM file with key and chain; clients are known by the common name `name`."""
        made = (authority or self.authority).issue_cert(
            *(identities or (f"{name}@example.org",)),
            common_name=name,
            organization_unit_name="Tests",
            **options,
        )
        path = self.home / f"{file or name}.pem"
        made.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def listener(self, **settings: object) -> dict[str, str]:
        """Settings of a broker with one TLS listener."""
        return {
            "listeners": "SSL://localhost:0",
            "ssl.keystore.location": str(self.broker),
            "ssl.truststore.location": str(self.ca),
            **{name.replace("_", "."): str(value) for name, value in settings.items()},
        }
