"""Tokens of clients: from an identity provider that is really asked, and from a file."""

import base64
import http.server
import json
import threading
import time
import urllib.parse

import jwt
import pytest

from headrace.link import bearer
from headrace.link.bearer import token_of
from headrace.link.errors import BrokerUnavailable, SettingsError
from headrace.link.settings import KafkaSettings
from headrace.wire.sasl.logins import BearerLogin, Login

SECRET = "a secret that is long enough for this"
SIGNED = jwt.encode({"sub": "alice"}, SECRET, "HS256")


class Provider:
    def __init__(self):
        self.asked = []
        self.answer = (200, {"access_token": SIGNED, "expires_in": 3600})
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                who = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
                provider.asked.append((who, dict(urllib.parse.parse_qsl(form))))
                status, said = provider.answer
                body = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def login(self, **more):
        return BearerLogin(f"http://127.0.0.1:{self.server.server_address[1]}/token", "app", "hush", **more)


@pytest.fixture
def provider():
    provider = Provider()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()
    bearer._tokens.clear()


def test_a_provider_is_asked_once_for_as_long_as_its_token_is_good(provider, monkeypatch):
    login = provider.login(scope="kafka")
    assert token_of(login) == token_of(login) == SIGNED
    assert provider.asked == [("app:hush", {"grant_type": "client_credentials", "scope": "kafka"})]
    later = time.time() + 3600
    monkeypatch.setattr(bearer.time, "time", lambda: later)
    token_of(login)
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("token", "told", "life"),
    [
        (7200, {}, 7200),
        (7200, {"expires_in": None}, 7200),
        (7200, {"expires_in": "soon"}, 7200),
        (7200, {"expires_in": 0}, 7200),
        (7200, {"expires_in": "3600"}, 3600),
        (-10, {}, 60),
        (SIGNED, {}, 60),
        (SIGNED, {"expires_in": float("inf")}, 60),
        ("opaque", {}, 60),
        ("opaque.ÿ", {}, 60),
        ("e30.WzFd.x", {}, 60),
    ],
)
def test_a_token_that_comes_without_its_life_is_used_for_a_while(provider, monkeypatch, token, told, life):
    now = began = time.time()
    if isinstance(token, int):  # the seconds until it expires
        token = jwt.encode({"sub": "alice", "exp": began + token}, SECRET, "HS256")
    provider.answer = (200, {"access_token": token, **told})
    monkeypatch.setattr(bearer.time, "time", lambda: now)
    login = provider.login()
    assert token_of(login) == token_of(login) == token
    now = began + life * 0.7
    token_of(login)
    assert len(provider.asked) == 1
    now = began + life
    token_of(login)
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        ((401, {}), SettingsError, "refused client 'app' \\(HTTP 401\\); check its id and secret"),
        ((500, {}), BrokerUnavailable, "answered with HTTP 500"),
        ((200, {"token": "x"}), BrokerUnavailable, "answered without an access_token"),
        (
            (200, {"access_token": jwt.encode({"sub": "alice"}, None, "none")}),
            SettingsError,
            "is not signed",
        ),
    ],
)
def test_an_answer_that_is_of_no_use_is_one_sentence(provider, answer, error, sentence):
    provider.answer = answer
    with pytest.raises(error, match=sentence) as caught:
        token_of(provider.login())
    assert "hush" not in str(caught.value)


def test_a_provider_that_is_away_is_worth_another_try(provider):
    provider.server.shutdown()
    provider.server.server_close()
    with pytest.raises(BrokerUnavailable, match="gave no token"):
        token_of(provider.login())


def test_a_file_is_read_again_each_time(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{SIGNED}\n")
    login = BearerLogin(file.as_uri())
    assert token_of(login) == SIGNED
    other = jwt.encode({"sub": "bob"}, "a secret that is long enough for this", "HS256")
    file.write_text(other)
    assert token_of(login) == other
    file.unlink()
    with pytest.raises(SettingsError, match="cannot be read"):
        token_of(login)


def settings(**more):
    given = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", **more}
    return KafkaSettings.of(given, "a test").login


def test_settings_by_every_name_say_where_the_token_comes_from():
    expected = BearerLogin("https://id.example/token", "app", "hush", "kafka")
    base = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
    }
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="app" clientSecret="hush" scope="kafka";'
    )
    assert settings(**base, **{"sasl.jaas.config": jaas}) == expected
    named = {
        "client.credentials.client.id": "app",
        "client.credentials.client.secret": "hush",
        "scope": "kafka",
    }
    assert (
        settings(**base, **{f"sasl.oauthbearer.{name}": value for name, value in named.items()}) == expected
    )
    assert "hush" not in repr(expected)
    with pytest.raises(SettingsError, match=r"OAUTHBEARER needs a client: set sasl\.oauthbearer\.client"):
        settings(**base)
    with pytest.raises(SettingsError, match=r"OAUTHBEARER needs a token: set sasl\.oauthbearer\.token"):
        settings(**{"sasl.mechanism": "OAUTHBEARER"})


def test_a_delegation_token_is_marked_in_the_jaas_line():
    jaas = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="id" password="hmac" tokenauth="true";'
    )
    found = settings(**{"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas})
    assert found == Login("SCRAM-SHA-256", "id", "hmac", by_token=True)
