"""TLS as a client uses it: which authorities it trusts, and the certificate it shows."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tls:
    """Where the certificates are; files or PEM text, as the Java client takes them."""

    authorities: str | None = None
    authorities_text: str | None = None
    certificate: str | None = None
    key: str | None = None
    pair_text: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    check_certificate: bool = True

    def context(self) -> ssl.SSLContext:
        """OSError for a file that is missing or invalid."""
        context = ssl.create_default_context(cafile=self.authorities, cadata=self.authorities_text)
        context.check_hostname = self.check_hostname and self.check_certificate
        if not self.check_certificate:
            context.verify_mode = ssl.CERT_NONE
        if self.pair_text is not None:
            # Python's ssl reads a key from a file only.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(self.pair_text)
                pem.flush()
                context.load_cert_chain(pem.name, password=self.key_password)
        elif self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key, password=self.key_password)
        return context
