"""Certificates that expire: shown by a real broker over TLS, and in files of settings."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from headrace.cli.cluster.settings_file import read
from headrace.watch.doctor.certificates import in_text
from tests.certificates import Certificates
from tests.watch.doctor.looking import findings


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "certificates")


def until(days):
    return datetime.now(UTC) + timedelta(days=days)


def test_a_certificate_that_a_broker_shows_is_a_warning_and_soon_an_error(certificates, make_broker):
    client = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
    }
    for days, severity in ((400, None), (20, "warning"), (3, "error")):
        issued = certificates.issue("soon", "localhost", "127.0.0.1", not_after=until(days + 0.5))
        broker = make_broker(certificates.listener(ssl_keystore_location=issued))
        found = findings("certificates", f"localhost:{broker.port}", client=client)
        assert [each[0] for each in found] == ([] if severity is None else [severity])
        if severity is not None:
            assert f"that broker 1 shows at localhost:{broker.port} expires in {days} d" in found[0][1]


def test_a_tls_listener_is_looked_at_even_through_a_plain_one(certificates, make_broker):
    issued = certificates.issue("soon", "localhost", not_after=until(3))
    settings = certificates.listener(ssl_keystore_location=issued)
    from headrace.testing.zookeeper import free_port

    plain, tls = free_port(), free_port()
    settings["listeners"] = f"PLAINTEXT://127.0.0.1:{plain},SSL://localhost:{tls}"
    make_broker(settings)
    [(severity, sentence, _)] = findings("certificates", f"127.0.0.1:{plain}")
    assert (severity, f"shows at localhost:{tls} expires in" in sentence) == ("error", True)


def test_a_certificate_in_a_file_that_has_expired_is_an_error(certificates, tmp_path):
    expired = certificates.issue("old", "localhost", not_before=until(-9), not_after=until(-2))
    path = tmp_path / "server.properties"
    path.write_text(
        f"listeners=SSL://localhost:9093\nssl.keystore.location={expired}\nssl.keystore.type=PEM\n"
    )
    [(severity, sentence, _)] = findings("certificates", file=read(path))
    assert severity == "error"
    assert f"in ssl.keystore.location of {path} expired 2 d" in sentence


def test_dates_are_read_as_the_library_reads_them(certificates):
    issued = certificates.issue("dates", "localhost", not_after=datetime(2061, 5, 4, 3, 2, 1, tzinfo=UTC))
    text = issued.read_text()
    wanted = [
        each.not_valid_after_utc.timestamp() for each in x509.load_pem_x509_certificates(issued.read_bytes())
    ]
    assert in_text(text) == wanted
    assert wanted[0] == datetime(2061, 5, 4, 3, 2, 1, tzinfo=UTC).timestamp(), (
        "the form with four digits of the year"
    )
