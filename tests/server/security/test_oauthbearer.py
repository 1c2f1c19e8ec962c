"""OAUTHBEARER: real JWTs, a real endpoint with their keys, and clients that show them."""

import asyncio
import base64
import http.server
import json
import threading
import time

import aiokafka
import aiokafka.abc
import jwt
import kafka
import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from kafka.net.sasl.oauth import AbstractTokenProvider

from headrace.server.identity import StartError
from headrace.testing.clock import MovableClock
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from headrace.wire.sasl.oauthbearer import UNDERSTOOD, client_message
from tests.server.security.test_before_the_login import is_served
from tests.waiting import until

ISSUER, AUDIENCE = "https://id.example", "headrace"
REFUSED = '{"status":"invalid_token"}'


class Provider:
    """An identity provider: keys, an endpoint that shows their public halves, and tokens."""

    def __init__(self):
        self.keys = {}
        self.others = []
        self.answer = None
        self.asked = 0
        self.add_key("first")
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked += 1
                if provider.answer is not None:
                    self.wfile.write(provider.answer)
                    return
                body = provider.published().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._handler = Handler
        self.port = 0
        self.open()

    def open(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/keys"

    def add_key(self, name, private=None):
        self.keys[name] = private or rsa.generate_private_key(65537, 2048)

    def published(self):
        entries = [{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}, *self.others]
        for name, key in self.keys.items():
            algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            entries.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": name, "use": "sig"})
        return json.dumps({"keys": entries})

    def token(self, key="first", algorithm="RS256", headers=None, now=None, **claims):
        now = time.time() if now is None else now
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 300, "scope": "a b"}
        said = {name: value for name, value in {**said, **claims}.items() if value is not None}
        return jwt.encode(said, self.keys[key], algorithm, {"kid": key, **(headers or {})})


@pytest.fixture(scope="module")
def provider():
    provider = Provider()
    yield provider
    provider.close()


def oauth_settings(url, **more):
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        **more,
    }


@pytest.fixture
def broker(make_secured, provider):
    return make_secured(oauth_settings(provider.url))


def show(broker, token, acts_as=""):
    """The last reply of a login with a token, and whether the broker serves the client then."""
    with WireClient(broker.secured) as client:
        assert client.call(SaslHandshakeRequest("OAUTHBEARER"), 1).error_code == 0
        message = client_message(token)
        if acts_as:
            message = message.replace(b"n,,", f"n,a={acts_as},".encode(), 1)
        reply = client.call(SaslAuthenticateRequest(message), 2)
        if reply.error_code == 0 and reply.auth_bytes:
            assert reply.auth_bytes.decode() == REFUSED
            reply = client.call(SaslAuthenticateRequest(UNDERSTOOD), 2)
        if reply.error_code == 0:
            assert is_served(client)
        return reply


def test_a_token_opens_the_door_for_as_long_as_it_is_good(broker, provider):
    reply = show(broker, provider.token())
    assert reply.error_code == 0
    assert 0 < reply.session_lifetime_ms <= 300_000


def test_a_session_ends_with_the_shorter_of_token_and_setting(make_secured, provider):
    broker = make_secured(oauth_settings(provider.url, **{"connections.max.reauth.ms": "60000"}))
    assert show(broker, provider.token()).session_lifetime_ms == 60_000
    assert show(broker, provider.token(exp=time.time() + 20)).session_lifetime_ms <= 20_000


@pytest.mark.parametrize(
    ("claims", "cause"),
    [
        ({"iss": "https://evil.example"}, "the token is from issuer 'https://evil.example', not from"),
        ({"iss": None}, "the token is from issuer None"),
        ({"aud": "somebody"}, "the token is for audience 'somebody', not for other, headrace"),
        ({"aud": None}, "the token is for audience None"),
        ({"exp": 1000}, "the token expired"),
        ({"exp": None}, "the token has no claim 'exp'"),
        ({"iat": None}, "the token has no claim 'iat'"),
        ({"iat": 9_999_999_999}, "the token is issued only in"),
        ({"nbf": 9_999_999_999}, "the token is valid only in"),
        ({"sub": None}, "the token has no claim 'sub' to take the user from"),
        ({"sub": " "}, "the token has no claim 'sub'"),
        ({"scope": 7}, "the claim 'scope' of the token is neither text nor a list"),
    ],
)
def test_a_token_that_does_not_say_the_right_thing_is_refused(broker, provider, caplog, claims, cause):
    reply = show(broker, provider.token(**claims))
    assert (reply.error_code, reply.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
    until(lambda: cause in caplog.text)


def test_a_token_with_a_wrong_signature_is_refused(broker, provider, caplog):
    stranger = Provider()
    stranger.close()
    assert show(broker, stranger.token()).error_message == REFUSED
    until(lambda: "the token's signature is wrong" in caplog.text)
    head, body, signature = provider.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "admin"}).encode()).decode().rstrip("=")
    assert show(broker, f"{head}.{forged}.{signature}").error_message == REFUSED


def test_unsigned_tokens_and_shared_secrets_are_refused(broker, provider, caplog):
    unsigned = jwt.encode(
        {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 99}, None, "none"
    )
    assert show(broker, unsigned).error_message == REFUSED
    until(lambda: "the token's algorithm is 'none'" in caplog.text)
    shared = jwt.encode({"sub": "alice"}, b"secret" * 10, "HS256", {"kid": "shared"})
    assert show(broker, shared).error_message == REFUSED
    assert show(broker, "what.is.this").error_message == REFUSED


def test_a_token_of_another_kind_of_key_is_taken(broker, provider):
    provider.add_key("curve", ec.generate_private_key(ec.SECP256R1()))
    assert show(broker, provider.token("curve", "ES256")).error_code == 0


def test_a_client_is_nobody_but_its_token(broker, provider):
    assert show(broker, provider.token(), acts_as="alice").error_code == 0
    reply = show(broker, provider.token(), acts_as="admin")
    assert "different from the token's principal name (alice)" in reply.error_message


def test_the_user_comes_from_another_claim_and_issuer_and_audience_need_not_be_checked(
    make_secured, provider
):
    given = oauth_settings(provider.url)
    for name in ("issuer", "audience"):
        del given[f"sasl.oauthbearer.expected.{name}"]
        given[f"sasl.oauthbearer.allow.unverified.{name}"] = "true"
    broker = make_secured({**given, "sasl.oauthbearer.sub.claim.name": "client_id"})
    assert show(broker, provider.token(iss="any", aud="any", client_id="app")).error_code == 0
    assert show(broker, provider.token(iss="any", aud="any")).error_message == REFUSED


def test_a_new_key_is_fetched_when_a_token_names_it(make_secured):
    provider, clock = Provider(), MovableClock()
    broker = make_secured(oauth_settings(provider.url), clock=clock)
    assert show(broker, provider.token()).error_code == 0
    provider.add_key("second")
    clock.advance(1)
    assert show(broker, provider.token("second")).error_code == 0
    asked = provider.asked
    assert show(broker, provider.token(headers={"kid": "nobody's"})).error_message == REFUSED
    assert show(broker, provider.token(headers={"kid": "nobody's"})).error_message == REFUSED
    assert provider.asked == asked, "a key that nobody knows must not make the broker ask without end"
    provider.close()


def test_keys_that_are_known_go_on_counting_while_the_endpoint_is_away(make_secured, caplog):
    provider, clock = Provider(), MovableClock()
    broker = make_secured(oauth_settings(provider.url), clock=clock)
    assert show(broker, provider.token()).error_code == 0
    provider.close()
    clock.advance(3601)
    now = clock.now_ms() / 1000
    for _ in range(3):
        assert show(broker, provider.token(now=now)).error_code == 0
    provider.add_key("second")
    assert show(broker, provider.token("second", now=now)).error_message == REFUSED
    until(lambda: "The keys fetched before go on counting." in caplog.text)
    assert f"the keys at {provider.url} cannot be fetched" in caplog.text
    provider.open()
    clock.advance(11)
    assert show(broker, provider.token("second", now=clock.now_ms() / 1000)).error_code == 0
    provider.close()


def test_a_broker_starts_without_its_identity_provider_and_lets_clients_in_when_it_is_there(make_secured):
    provider, clock = Provider(), MovableClock()
    provider.close()
    broker = make_secured(oauth_settings(provider.url), clock=clock)
    assert show(broker, provider.token()).error_message == REFUSED
    provider.open()
    clock.advance(11)
    assert show(broker, provider.token(now=clock.now_ms() / 1000)).error_code == 0
    provider.close()


UNUSUAL_KEYS = [
    {"kty": "RSA", "kid": "no numbers"},
    {"kty": "RSA", "kid": "numbers", "n": 5, "e": 7},
    {"kty": "EC", "kid": "secp-nothing", "crv": "P-1", "x": "AA", "y": "AA"},
    {"kty": "EC", "kid": "not on its curve", "crv": "P-256", "x": "A" * 43, "y": "B" * 43},
    {"kty": "OKP", "kid": "short", "crv": "Ed25519", "x": "AA"},
    {"kty": "AKP", "kid": "later", "alg": "ML-DSA-44", "pub": "AA"},
    {"kty": ["RSA"], "kid": "a list"},
    {"kid": "nothing"},
]


def test_a_key_that_cannot_be_used_is_named_once_and_the_others_count(make_secured, caplog):
    provider, clock = Provider(), MovableClock()
    provider.others = [*UNUSUAL_KEYS, None, 7, "text"]
    broker = make_secured(oauth_settings(provider.url), clock=clock)
    assert show(broker, provider.token()).error_code == 0
    clock.advance(3601)
    provider.add_key("second")
    assert show(broker, provider.token("second", now=clock.now_ms() / 1000)).error_code == 0
    assert provider.asked >= 2
    for key in UNUSUAL_KEYS:
        named = [each for each in caplog.messages if f"Key {key['kid']!r} of type {key.get('kty')}" in each]
        assert len(named) == 1, key
    provider.close()


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.0 200 OK\r\n\r\n{"keys": 5}',
        b'HTTP/1.0 200 OK\r\n\r\n{"keys": {}}',
        b"HTTP/1.0 200 OK\r\n\r\n5",
        b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000,
        b'HTTP/1.0 200 OK\r\n\r\n{"keys": [{"kty": "RSA", "kid": "a"}]}',
        b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nfew",
        b"what is this\r\n\r\n",
        b"",
    ],
    ids=lambda answer: answer[-12:].decode(),
)
def test_whatever_the_endpoint_answers_is_a_failed_fetch_with_a_pause_after_it(make_secured, caplog, answer):
    provider, clock = Provider(), MovableClock()
    provider.answer = answer
    broker = make_secured(
        oauth_settings(provider.url, **{"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "10000"}),
        clock=clock,
    )
    for _ in range(3):
        assert show(broker, provider.token()).error_message == REFUSED
    assert provider.asked == 1, "it is not asked again before the pause is over"
    assert sum("The keys for OAUTHBEARER at" in each for each in caplog.messages) == 1
    assert "failed inside the broker" not in caplog.text
    provider.answer = None
    clock.advance(11)
    assert show(broker, provider.token(now=clock.now_ms() / 1000)).error_code == 0
    provider.close()


def test_keys_come_from_a_file(make_secured, provider, tmp_path):
    file = tmp_path / "keys.json"
    file.write_text(provider.published())
    broker = make_secured(oauth_settings(file.as_uri()))
    assert show(broker, provider.token()).error_code == 0


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("jwks.endpoint.url", "cannot check tokens: set sasl.oauthbearer.jwks.endpoint.url"),
        ("expected.issuer", "would take tokens of any issuer: set sasl.oauthbearer.expected.issuer, or"),
        (
            "expected.audience",
            "would take tokens of any audience: set sasl.oauthbearer.expected.audience, or",
        ),
    ],
)
def test_a_broker_that_could_not_tell_a_good_token_does_not_start(make_secured, missing, sentence):
    with pytest.raises(StartError, match=sentence):
        make_secured({**oauth_settings("file:///keys"), f"sasl.oauthbearer.{missing}": ""})


def test_a_callback_handler_of_somebodys_own_is_refused(make_secured):
    name = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
    with pytest.raises(StartError, match="names the Java class Own; remove it"):
        make_secured({**oauth_settings("file:///keys"), name: "com.acme.Own"})


# Real clients.


def test_librdkafka_shows_its_token(broker, provider):
    topic = broker.create_topic()
    producer = Producer(
        {
            "bootstrap.servers": broker.secured,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (provider.token(), time.time() + 300),
        }
    )
    producer.produce(topic, b"hello")
    assert producer.flush(60) == 0


def test_kafka_python_shows_its_token(broker, provider):
    class Tokens(AbstractTokenProvider):
        def token(self):
            return provider.token()

    topic = broker.create_topic()
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.secured,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    producer.send(topic, b"hello").get(60)
    producer.close()


async def test_aiokafka_shows_its_token(broker, provider):
    class Tokens(aiokafka.abc.AbstractTokenProvider):
        async def token(self):
            return provider.token()

    topic = await asyncio.to_thread(broker.create_topic)
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=broker.secured,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    async with producer:
        await producer.send_and_wait(topic, b"hello")
