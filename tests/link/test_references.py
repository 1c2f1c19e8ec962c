"""`${env:…}`, `${file:…}` and `${dir:…}` in settings: resolved where they are read, and never spelled out in a message."""

import pytest

from headrace.link.errors import SettingsError
from headrace.link.references import resolve
from headrace.link.settings import KafkaSettings
from headrace.link.translation import translate
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.config.describe import describe_broker

PROVIDER = "org.apache.kafka.common.config.provider."


@pytest.fixture(autouse=True)
def secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_TEST_SECRET", "hush")
    (tmp_path / "secrets.properties").write_text("# a comment\npassword = h\\u0075sh\nlong=a\\\n  b\n")
    (tmp_path / "token").write_text("hush\n")
    return tmp_path


def value(text, **providers):
    return resolve({"x": text, **{name.replace("_", "."): text for name, text in providers.items()}})["x"]


def test_each_kind(secrets):
    assert value("${env:HEADRACE_TEST_SECRET}") == "hush"
    assert value(f"${{file:{secrets}/secrets.properties:password}}") == "hush"
    assert value(f"${{file:{secrets}/secrets.properties:long}}") == "ab"
    assert value(f"${{dir:{secrets}:token}}") == "hush"
    assert value("a ${env:HEADRACE_TEST_SECRET} b ${env:HEADRACE_TEST_SECRET}") == "a hush b hush"


def test_names_of_the_users_own(secrets):
    given = {
        "config.providers": "vault,e",
        "config.providers.vault.class": f"{PROVIDER}FileConfigProvider",
        "config.providers.vault.param.allowed.paths": str(secrets),
        "config.providers.e.class": f"{PROVIDER}EnvVarConfigProvider",
        "config.providers.e.param.allowlist.pattern": "HEADRACE_.*",
        "x": f"${{vault:{secrets}/secrets.properties:password}}${{e:HEADRACE_TEST_SECRET}}",
    }
    assert resolve(given) == {"config.providers": "vault,e", "x": "hushhush"}
    with pytest.raises(SettingsError, match=r"is outside of allowed\.paths"):
        resolve({**given, "x": "${vault:/etc/hosts:x}"})
    with pytest.raises(SettingsError, match="has no variable PATH"):
        resolve({**given, "x": "${e:PATH}"})


@pytest.mark.parametrize("text", ["${x}", "$", "${", "${unknown:a:b}", "${}", "a:b", "${:}"])
def test_what_is_no_reference_stays(text):
    assert value(text) == text


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${env:HEADRACE_NO_SUCH}", "the environment has no variable HEADRACE_NO_SUCH; set it"),
        ("${file:/no/such:key}", "/no/such cannot be read: No such file or directory"),
        ("${dir:/no/such:key}", "/no/such/key cannot be read"),
        ("${file:HOME/secrets.properties:other}", "secrets.properties has no line other="),
    ],
)
def test_what_cannot_be_resolved_is_named(secrets, reference, why):
    reference = reference.replace("HOME", str(secrets))
    with pytest.raises(SettingsError) as refused:
        resolve({"ssl.key.password": reference}, "kafka.")
    assert str(refused.value).startswith(f"kafka.ssl.key.password: {reference} cannot be resolved: ")
    assert why in str(refused.value)
    with pytest.raises(ConfigError, match=r"^server.properties:3: ssl.key.password: "):
        BrokerConfig.load({"ssl.key.password": reference}, None, {"ssl.key.password": "server.properties:3"})


def test_a_provider_in_java_is_refused_when_it_is_asked():
    given = {"config.providers": "v", "config.providers.v.class": "com.acme.Vault"}
    assert resolve({**given, "x": "y"})["x"] == "y"
    with pytest.raises(SettingsError, match=r"config\.providers\.v\.class=com\.acme\.Vault is Java code"):
        resolve({**given, "x": "${v:a:b}"})


def test_clients_resolve_them_and_hide_them():
    given = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "${env:HEADRACE_TEST_SECRET}",
    }
    assert translate(given).settings["sasl.password"] == "hush"
    settings = KafkaSettings.of(given, "a test")
    assert settings.login.password == "hush"
    assert "hush" not in repr(settings)


def test_a_broker_resolves_them_and_shows_what_was_written():
    config = BrokerConfig.load(
        {
            "broker.rack": "${env:HEADRACE_TEST_SECRET}",
            "ssl.key.password": "${env:HEADRACE_TEST_SECRET}",
            "config.providers": "env",
            "config.providers.env.class": f"{PROVIDER}EnvVarConfigProvider",
        }
    )
    assert config.string("broker.rack") == config.string("ssl.key.password") == "hush"
    assert config.warnings == ()
    described = {entry.name: entry for entry in describe_broker(config)}
    assert described["broker.rack"].value == "${env:HEADRACE_TEST_SECRET}"
    assert described["ssl.key.password"].value is None
    assert "hush" not in repr(described)
    assert "hush" not in repr(config)
    assert "hush" not in str(config)


def test_a_bad_value_is_shown_as_it_was_written():
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.load({"num.io.threads": "${env:HEADRACE_TEST_SECRET}"})
    assert "hush" not in str(refused.value)
    assert "Invalid value ${env:HEADRACE_TEST_SECRET} for configuration num.io.threads" in str(refused.value)


def test_a_dynamic_password_is_resolved_on_the_broker():
    dynamic = {
        "ssl.key.password": "${env:HEADRACE_TEST_SECRET}",
        "broker.rack": "${env:HEADRACE_TEST_SECRET}",
    }
    config = BrokerConfig.load({}).with_dynamic({}, dynamic)
    assert config.string("ssl.key.password") == "hush"
    assert config.string("broker.rack") == "${env:HEADRACE_TEST_SECRET}"
