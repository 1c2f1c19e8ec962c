"""Settings of the authorizer that would leave a cluster open, or locked, by mistake are refused with the remedy."""

import pytest

from headrace.server.config.authorization import (
    OLDER_NAMES,
    STANDARD,
    check_authorization,
    parse_super_users,
)
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.authorizer import AllowAll, StandardAuthorizer
from headrace.server.security.choosing import authorizer_of

AUTHORIZER = {"authorizer.class.name": STANDARD}


def test_super_users_are_separated_by_semicolons_because_names_contain_commas():
    text = " User:CN=a,OU=b ;; User:bob;"
    assert parse_super_users(text) == {"User:CN=a,OU=b", "User:bob"}


def test_a_super_user_without_a_type_is_refused_with_the_right_way_to_write_it():
    with pytest.raises(ConfigError, match=r"but got admin; write User:admin, and separate"):
        BrokerConfig.load({**AUTHORIZER, "super.users": "admin"})


@pytest.mark.parametrize(
    "setting", [{"super.users": "User:ANONYMOUS"}, {"allow.everyone.if.no.acl.found": "true"}]
)
def test_without_a_login_everyone_must_be_allowed_something(setting):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load({**AUTHORIZER, "super.users": "User:admin"})
    assert str(caught.value) == (
        "authorizer.class.name is set, but clients cannot log in by any listener: PLAINTEXT (PLAINTEXT). Everyone "
        "would be User:ANONYMOUS and denied everything. Add a SASL_SSL listener, or an SSL listener with "
        "ssl.client.auth=required; to try out ACLs without a login, set super.users=User:ANONYMOUS."
    )
    BrokerConfig.load({**AUTHORIZER, **setting})


@pytest.mark.parametrize(
    ("settings", "possible"),
    [
        ({"listeners": "SASL_SSL://:1"}, True),
        ({"listeners": "PLAINTEXT://:1,SASL_PLAINTEXT://:2"}, True),
        ({"listeners": "SSL://:1"}, False),
        ({"listeners": "SSL://:1", "ssl.client.auth": "required"}, True),
        ({"listeners": "SSL://:1", "listener.name.ssl.ssl.client.auth": "requested"}, True),
        (
            {"listeners": "SSL://:1,PLAINTEXT://:2", "listener.name.plaintext.ssl.client.auth": "required"},
            False,
        ),
    ],
)
def test_clients_log_in_by_sasl_or_by_certificate(settings, possible):
    config = BrokerConfig(static={**AUTHORIZER, **settings})
    if possible:
        check_authorization(config)
    else:
        with pytest.raises(ConfigError, match="clients cannot log in by any listener"):
            check_authorization(config)


@pytest.mark.parametrize(
    ("name", "value"), [("super.users", "User:admin"), ("allow.everyone.if.no.acl.found", "false")]
)
def test_a_promise_that_no_authorizer_keeps_is_refused(name, value):
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load({name: value})
    assert str(caught.value) == (
        f"{name} is set, but without an authorizer everyone may do everything: "
        f"set authorizer.class.name={STANDARD}, or remove {name}."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("authorizer.class.name", ""), ("super.users", ""), ("allow.everyone.if.no.acl.found", "true")],
)
def test_a_value_that_asks_for_nothing_is_taken(name, value):
    config = BrokerConfig.load({name: value})
    assert config.warnings == ()
    assert isinstance(authorizer_of(config), AllowAll)


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_authorizers_of_the_zookeeper_time_have_a_successor(name):
    config = BrokerConfig.load({"authorizer.class.name": name, "super.users": "User:ANONYMOUS"})
    assert config.notices == (
        f"authorizer.class.name={name} was removed in Kafka 4.0: {STANDARD} decides in its place.",
    )
    assert isinstance(authorizer_of(config), StandardAuthorizer)


class Own:
    def __init__(self, settings):
        self.allowed = settings.get("own.allowed", "User:a")

    def authorize(self, principal, host, operation, resource):
        return principal == self.allowed


class WithoutMethod:
    def __init__(self, settings):
        pass


def test_an_authorizer_of_ones_own_is_a_python_class():
    config = BrokerConfig.load({"authorizer.class.name": f"{__name__}.Own"})
    authorizer = authorizer_of(config)
    assert authorizer.authorize("User:a", "h", None, None)
    assert not authorizer.authorize("User:b", "h", None, None)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("com.acme.RangerAuthorizer", r"cannot be used \(ModuleNotFoundError: No module named 'com'\)"),
        (f"{__name__}.Missing", r"cannot be used \(AttributeError"),
        (f"{__name__}.WithoutMethod", r"has no method authorize\(\)"),
        ("Own", "cannot be used"),
    ],
)
def test_an_authorizer_that_cannot_be_had_is_refused(name, sentence):
    with pytest.raises(ConfigError, match=sentence):
        authorizer_of(BrokerConfig.load({"authorizer.class.name": name}))
