"""Logins checked against the examples of the standards, without a broker."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.cluster.policy_changes import ScramChanged
from headrace.server.config.broker import BrokerConfig
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.sasl import oauthbearer, plain
from headrace.wire.sasl import scram as scram_module
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.logins import BearerLogin, Login, client_exchange
from headrace.wire.sasl.scram import (
    ALGORITHMS,
    FEWEST_ITERATIONS,
    ScramChallenge,
    ScramCredential,
    WrongProof,
    read_client_first,
)

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
        *(
            (
                f"r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={count}".encode(),
                f"asks for {count} SCRAM iterations",
            )
            for count in (-1, 0, 1, 4095, 1_000_001, 2_000_000_000)
        ),
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


@pytest.mark.parametrize("mechanism", sorted(ALGORITHMS))
@pytest.mark.parametrize("iterations", [4096, 8192, 16384, 100_000])
def test_a_client_hashes_as_often_as_brokers_really_ask_for(mechanism, iterations):
    credential = ScramCredential.of_password(mechanism, "pencil", SALT, iterations)
    steps = client_exchange(Login(mechanism, "user", "pencil"))
    challenge = ScramChallenge(mechanism, read_client_first(next(steps)), credential)
    with pytest.raises(StopIteration):
        steps.send(challenge.judge(steps.send(challenge.text.encode())))


def test_a_name_with_the_signs_that_scram_uses_itself_is_escaped(monkeypatch):
    monkeypatch.setattr(scram_module.secrets, "token_urlsafe", lambda _: NONCE)
    assert next(client_exchange(Login("SCRAM-SHA-512", "a=b,c", "x"))) == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


def test_plain_sends_user_and_password():
    assert list(client_exchange(Login("PLAIN", "user", "pencil"))) == [b"\0user\0pencil"]


def test_a_password_is_not_shown():
    assert "pencil" not in repr(Login("PLAIN", "user", "pencil"))


# --- both sides ---

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_the_broker_judges_a_proof_as_the_standard_does(monkeypatch):
    monkeypatch.setattr(scram_module.secrets, "token_urlsafe", lambda _: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    credential = ScramCredential.of_password("SCRAM-SHA-256", "pencil", SALT, 4096)
    challenge = ScramChallenge(
        "SCRAM-SHA-256", read_client_first(f"n,,n=user,r={NONCE}".encode()), credential
    )
    assert challenge.text.encode() == SERVER_FIRST
    assert challenge.judge(CLIENT_FINAL) == SERVER_FINAL


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(mechanism=st.sampled_from(sorted(ALGORITHMS)), name=names, password=names, tried=names)
def test_client_and_broker_agree_when_the_password_is_right_and_only_then(mechanism, name, password, tried):
    credential = ScramCredential.of_password(mechanism, password, SALT, FEWEST_ITERATIONS)
    steps = client_exchange(Login(mechanism, name, tried))
    first = read_client_first(next(steps))
    assert first.username == name
    challenge = ScramChallenge(mechanism, first, credential)
    final = steps.send(challenge.text.encode())
    if tried != password:
        with pytest.raises(WrongProof):
            challenge.judge(final)
        return
    with pytest.raises(StopIteration):
        steps.send(challenge.judge(final))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=,r=abc",
        b"n,,r=abc,n=user",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=a,b",
        b"n,,n=user,r=abc,tokenauth",
        b"\xff\xfe",
    ],
)
def test_a_first_message_that_is_none_is_refused(message):
    with pytest.raises(SaslError):
        read_client_first(message)


def test_a_client_may_say_that_it_is_itself_and_name_extensions():
    first = read_client_first(b"n,a=a=3Db,n=a=3Db,r=abc,tokenauth=true")
    assert (first.username, first.extensions) == ("a=b", {"tokenauth": "true"})


@given(message=st.binary(max_size=200) | st.text(alphabet="cnrp=,abw", max_size=60).map(str.encode))
def test_no_final_message_but_the_right_one_is_taken(message):
    credential = ScramCredential.of_password("SCRAM-SHA-512", "pencil", SALT, FEWEST_ITERATIONS)
    challenge = ScramChallenge("SCRAM-SHA-512", read_client_first(b"n,,n=user,r=abc"), credential)
    with pytest.raises(SaslError):
        challenge.judge(message)


def test_a_proof_counts_for_its_own_challenge_only():
    credential = ScramCredential.of_password("SCRAM-SHA-256", "pencil", SALT, FEWEST_ITERATIONS)
    steps = client_exchange(Login("SCRAM-SHA-256", "user", "pencil"))
    first = read_client_first(next(steps))
    one, other = (ScramChallenge("SCRAM-SHA-256", first, credential) for _ in range(2))
    final = steps.send(one.text.encode())
    with pytest.raises(SaslError):
        other.judge(final)
    assert one.judge(final).startswith(b"v=")


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"user\0pencil", "expected 3 tokens, got 2"),
        (b"\0user\0pencil\0more", "expected 3 tokens, got 4"),
        (b"\0\0pencil", "username not specified"),
        (b"\0user\0", "password not specified"),
        (b"other\0user\0pencil", "an authorization id that is different from username"),
        (b"\0\xff\0x", "it is not UTF-8"),
    ],
)
def test_a_plain_message_that_is_none_is_refused_in_kafkas_words(message, complaint):
    with pytest.raises(SaslError, match=complaint):
        plain.read_client_message(message)


def test_a_bearer_message_reads_as_it_was_written():
    # RFC 7628, section 4.1, with the token of that example
    token = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg"
    message = oauthbearer.client_message(token, {"host": "server.example.com", "port": "143"})
    assert message == f"n,,\x01auth=Bearer {token}\x01host=server.example.com\x01port=143\x01\x01".encode()
    read = oauthbearer.read_client_message(message)
    assert (read.token, read.acts_as) == (token, "")
    assert read.extensions == {"host": "server.example.com", "port": "143"}
    assert oauthbearer.read_client_message(message.replace(b"n,,", b"n,a=a=3Db,", 1)).acts_as == "a=b"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"\xff",
    ],
)
def test_a_bearer_message_that_is_none_is_refused(message):
    with pytest.raises(SaslError):
        oauthbearer.read_client_message(message)


def test_a_client_acknowledges_the_refusal_of_its_token():
    steps = oauthbearer.client_exchange("abc")
    next(steps)
    assert steps.send(b'{"status":"invalid_token"}') == oauthbearer.UNDERSTOOD
    with pytest.raises(SaslError, match="invalid_token"):
        steps.send(b"")


@pytest.mark.parametrize(
    "secret",
    [
        ScramCredential(b"pencil", 1, b"pencil", b"pencil"),
        plain.PlainMessage("", "user", "pencil"),
        oauthbearer.BearerMessage("", "pencil", {}),
        BearerLogin("https://x", "id", "pencil"),
        SaslAuthenticateRequest(b"pencil"),
        ScramChanged("user", "SCRAM-SHA-256", {"stored_key": "pencil"}),
        BrokerConfig({"sasl.jaas.config": "pencil"}),
    ],
    ids=lambda secret: type(secret).__name__,
)
def test_nothing_that_holds_a_secret_shows_it(secret):
    assert "pencil" not in repr(secret)
