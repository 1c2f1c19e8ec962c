"""DescribeClientQuotas and AlterClientQuotas, with Kafka's filters, errors and texts."""

import pytest

from headrace.wire.errors import ErrorCode
from headrace.wire.messages import alter_client_quotas as acq
from headrace.wire.messages import describe_client_quotas as dcq
from tests.server.api import quota_client

EXACT, DEFAULT, ANY = 0, 1, 2
ADA, DEFAULT_USER = (("user", "ada"),), (("user", None),)
ADA_APP, ADA_DEFAULT = (("user", "ada"), ("client-id", "app")), (("user", "ada"), ("client-id", None))
APP, ADDRESS = (("client-id", "app"),), (("ip", "10.0.0.1"),)
LARGE = 2.0**40


@pytest.fixture(scope="module")
def quotas(broker):
    """What is there in all tests of this module; large enough to throttle nobody."""
    for entity in (ADA, DEFAULT_USER, ADA_APP, ADA_DEFAULT, APP):
        quota_client.set_quota(broker.bootstrap, entity, producer_byte_rate=LARGE)
    quota_client.set_quota(broker.bootstrap, ADDRESS, connection_creation_rate=1000)


def described(wire, *components, strict=False, version=1):
    request = dcq.DescribeClientQuotasRequest([dcq.ComponentData(*each) for each in components], strict)
    reply = wire.ask(request, version, dcq.DescribeClientQuotasResponse)
    assert reply.error_code == 0, reply.error_message
    return {tuple((part.entity_type, part.entity_name) for part in entry.entity) for entry in reply.entries}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.usefixtures("quotas")
def test_a_filter_chooses_entities(wire, version):
    everything = {ADA, DEFAULT_USER, ADA_APP, ADA_DEFAULT, APP, ADDRESS}
    assert described(wire, version=version) == everything
    assert described(wire, ("user", EXACT, "ada")) == {ADA, ADA_APP, ADA_DEFAULT}
    assert described(wire, ("user", EXACT, "ada"), strict=True) == {ADA}
    assert described(wire, ("user", DEFAULT, None)) == {DEFAULT_USER}
    assert described(wire, ("user", ANY, None)) == everything - {APP, ADDRESS}
    assert described(wire, ("user", ANY, None), strict=True) == {ADA, DEFAULT_USER}
    assert described(wire, ("user", EXACT, "ada"), ("client-id", ANY, None)) == {ADA_APP, ADA_DEFAULT}
    assert described(wire, ("client-id", EXACT, "app"), strict=True) == {APP}
    assert described(wire, ("ip", ANY, None)) == {ADDRESS}
    assert described(wire, ("user", EXACT, "nobody")) == set()
    assert described(wire, strict=True) == set()


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            [("user", EXACT, "a"), ("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        (
            [("user", EXACT, None)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", ANY, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 7, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 7"),
        (
            [("ip", ANY, None), ("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component.",
        ),
    ],
)
def test_a_filter_that_cannot_be_is_refused(wire, components, code, message):
    request = dcq.DescribeClientQuotasRequest([dcq.ComponentData(*each) for each in components])
    reply = wire.ask(request, 1, dcq.DescribeClientQuotasResponse)
    assert (reply.error_code, reply.error_message, reply.entries) == (code, message, None)


def entry(entity, **values):
    return acq.EntryData(
        [acq.EntityData(*part) for part in entity],
        [acq.OpData(name, value) for name, value in values.items()],
    )


@pytest.mark.parametrize("version", [0, 1])
def test_entities_succeed_and_fail_by_themselves_in_order(wire, version):
    request = acq.AlterClientQuotasRequest(
        [
            entry([("ip", "nowhere.invalid")], connection_creation_rate=5.0),
            entry([("user", "one")], request_percentage=LARGE),
            entry([("user", "two")], nonsense=1.0),
        ]
    )
    reply = wire.ask(request, version, acq.AlterClientQuotasResponse)
    assert [(each.error_code, each.error_message) for each in reply.entries] == [
        (ErrorCode.INVALID_REQUEST, "nowhere.invalid is not a valid IP or resolvable host."),
        (ErrorCode.NONE, None),
        (ErrorCode.INVALID_REQUEST, "Invalid configuration key nonsense"),
    ]
    assert [each.entity[0].entity_name for each in reply.entries] == ["nowhere.invalid", "one", "two"]
    assert described(wire, ("user", EXACT, "one")) == {(("user", "one"),)}
    quota_client.set_quota(
        f"127.0.0.1:{wire.socket.getpeername()[1]}", [("user", "one")], request_percentage=None
    )
    assert described(wire, ("user", EXACT, "one")) == set()


def test_validate_only_changes_nothing(wire):
    request = acq.AlterClientQuotasRequest([entry([("user", "tom")], request_percentage=LARGE)], True)
    assert wire.ask(request, 1, acq.AlterClientQuotasResponse).entries[0].error_code == 0
    assert described(wire, ("user", EXACT, "tom")) == set()
