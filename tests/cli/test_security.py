"""Logins on the plain socket, checked against the examples of the standards."""

from __future__ import annotations

import pytest

from headrace.cli.failure import Failure
from headrace.cli.raw import security
from headrace.cli.raw.security import Security

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "user", "sasl.password": "pencil"}
# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.fixture
def scram(monkeypatch):
    monkeypatch.setattr(security.secrets, "token_urlsafe", lambda _: NONCE)
    talk = Security({**LOGIN, "sasl.mechanism": "SCRAM-SHA-256"}).conversation()
    assert talk.send(None) == f"n,,n=user,r={NONCE}".encode()
    return talk


def test_scram_proves_the_password_as_the_standard_does(scram):
    assert scram.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        scram.send(SERVER_FINAL)


def test_a_server_that_does_not_know_the_password_is_found_out(scram):
    scram.send(SERVER_FIRST)
    with pytest.raises(Failure, match="may not be who it claims to be"):
        scram.send(b"v=" + b"A" * 43 + b"=")


@pytest.mark.parametrize("answer", [b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", b"e=unknown-user", b""])
def test_an_answer_to_another_login_is_refused(scram, answer):
    with pytest.raises(Failure, match="does not belong to this login"):
        scram.send(answer)


def test_plain_sends_user_and_password():
    talk = Security({**LOGIN, "sasl.mechanism": "PLAIN"}).conversation()
    assert talk.send(None) == b"\0user\0pencil"


def test_a_mechanism_that_is_not_supported_is_named():
    with pytest.raises(Failure, match="PLAIN and SCRAM, not GSSAPI"):
        Security(LOGIN).conversation()
