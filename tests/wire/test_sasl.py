"""Logins checked against the examples of the standards, without a broker."""

import pytest

from headrace.wire.sasl import scram as scram_module
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.logins import Login, client_exchange

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.fixture
def scram(monkeypatch):
    monkeypatch.setattr(scram_module.secrets, "token_urlsafe", lambda _: NONCE)
    steps = client_exchange(Login("SCRAM-SHA-256", "user", "pencil"))
    assert next(steps) == f"n,,n=user,r={NONCE}".encode()
    return steps


def test_scram_proves_the_password_as_the_standard_does(scram):
    assert scram.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        scram.send(SERVER_FINAL)


@pytest.mark.parametrize("proof", [b"v=" + b"A" * 43 + b"=", b"v=AAAA", b"v=", b"", b"\xff\xfe"])
def test_a_broker_that_does_not_know_the_password_itself_is_not_believed(scram, proof):
    scram.send(SERVER_FIRST)
    with pytest.raises(SaslError, match="could not prove"):
        scram.send(proof)


@pytest.mark.parametrize(
    ("challenge", "complaint"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not belong to this login"),
        (f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0".encode(), "does not belong to this login"),
        (f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many".encode(), "cannot be read"),
        (f"r={NONCE}x,s=!,i=4096".encode(), "cannot be read"),
        (b"e=unknown-user", "refused the login: unknown-user"),
        (b"", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_challenge_that_is_not_for_this_login_is_refused(scram, challenge, complaint):
    with pytest.raises(SaslError, match=complaint):
        scram.send(challenge)


def test_a_name_with_the_signs_that_scram_uses_itself_is_escaped(monkeypatch):
    monkeypatch.setattr(scram_module.secrets, "token_urlsafe", lambda _: NONCE)
    assert next(client_exchange(Login("SCRAM-SHA-512", "a=b,c", "x"))) == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


def test_plain_sends_user_and_password():
    assert list(client_exchange(Login("PLAIN", "user", "pencil"))) == [b"\0user\0pencil"]


def test_a_password_is_not_shown():
    assert "pencil" not in repr(Login("PLAIN", "user", "pencil"))
