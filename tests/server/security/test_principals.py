"""Who a client is by its certificate: Java's spelling of the name, Kafka's mapping rules, and a builder of the operator's own."""

import pytest

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.principal_builder import AuthenticationContext, principal_builder
from headrace.server.security.principal_rules import BadRule, NoRule, PrincipalRules

NAME = "CN=kafka-server.example.org,OU=Servers,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("", None),
        ("RULE:^CN=([^,]+),.*$/$1/", "kafka-server.example.org"),
        ("RULE:^CN=([^,]+),.*$/$1/U,DEFAULT", "KAFKA-SERVER.EXAMPLE.ORG"),
        ("RULE:^CN=(.*?)\\..*,O=(.*?),.*$/$1@$2/L, DEFAULT", "kafka-server@acme"),
        ("RULE:^CN=nobody$/x/,RULE:.*OU=Servers.*/a server/", "a server"),
        ("RULE:^CN=nobody$/x/ ,\n DEFAULT", NAME),
        ("RULE:^CN=nobody$/x/", None),
        ("RULE:^CN=(?<host>[^,]+),.*$/$1$7\\//", "kafka-server.example.org$7/"),
    ],
)
def test_rules(rules, name):
    if name is None:
        with pytest.raises(NoRule, match="applies to CN=kafka-server"):
            PrincipalRules(rules).name_of(NAME)
    else:
        assert PrincipalRules(rules).name_of(NAME) == name


@pytest.mark.parametrize("rules", ["RULE:a/b", "DEFAULT,x", "RULE:(/x/", "RULE:a/b/X", "default"])
def test_bad_rules_are_named(rules):
    with pytest.raises(BadRule, match=r"^ssl.principal.mapping.rules: "):
        PrincipalRules(rules)


class HostBuilder:
    """As an operator might write one."""

    def configure(self, settings):
        self.suffix = settings["broker.rack"]

    def build(self, context: AuthenticationContext) -> str:
        if context.client_address == "10.0.0.1":
            raise ValueError("10.0.0.1 is not welcome")
        return f"User:{context.client_address}-{context.listener}-{self.suffix}"


class NoBuilder:
    pass


def built(name):
    return principal_builder(BrokerConfig.load({"principal.builder.class": name, "broker.rack": "r"}))


def test_a_builder_of_the_operators_own():
    builder = built(f"{__name__}.HostBuilder")
    assert builder.build(AuthenticationContext("OUT", "SSL", "::1")) == "User:::1-OUT-r"


def test_kafkas_default_builder_by_its_java_name():
    builder = built("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
    assert builder.build(AuthenticationContext("OUT", "SSL", "::1")) == "User:ANONYMOUS"
    assert builder.build(AuthenticationContext("OUT", "SASL_SSL", "::1", b"x", "PLAIN", "ann")) == "User:ann"


@pytest.mark.parametrize(
    "name", ["com.acme.Builder", "Builder", f"{__name__}.Missing", f"{__name__}.NoBuilder"]
)
def test_another_builder_is_refused(name):
    with pytest.raises(ConfigError, match=rf"principal\.builder\.class={name} "):
        built(name)
