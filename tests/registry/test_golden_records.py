"""A `_schemas` topic that Confluent's registry or Karapace wrote is understood, and what this registry writes looks the same."""

from headrace.registry import records
from headrace.registry.content import Content
from headrace.registry.formats.base import Reference
from headrace.registry.state import Applied, State

CONFLUENT = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (
        b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
        b'{"subject":"orders-value","version":1,"id":1,"md5":"AAAAAAAAAAAAAAAAAAAAAA==","schema":"\\"string\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"item","version":1,"magic":1}',
        b'{"subject":"item","version":1,"id":2,"schemaType":"PROTOBUF","schema":"syntax = \\"proto3\\";\\n","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"basket","version":1,"magic":1}',
        b'{"subject":"basket","version":1,"id":3,"schemaType":"PROTOBUF","references":[{"name":"item.proto","subject":"item",'
        b'"version":1}],"schema":"syntax = \\"proto3\\";\\nimport \\"item.proto\\";\\n","deleted":false}',
    ),
    (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (
        b'{"keytype":"CONFIG","subject":"orders-value","magic":0}',
        b'{"subject":"orders-value","compatibilityLevel":"NONE"}',
    ),
    (b'{"keytype":"MODE","subject":"item","magic":0}', b'{"subject":"item","mode":"READONLY"}'),
    (
        b'{"keytype":"CONTEXT","tenant":"default","context":".eu","magic":0}',
        b'{"tenant":"default","context":".eu"}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":":.eu:orders-value","version":1,"magic":1}',
        b'{"subject":":.eu:orders-value","version":1,"id":1,"schema":"\\"int\\"","deleted":false}',
    ),
    (b'{"keytype":"ASSOC","tenant":"default","magic":0}', b'{"what":"is not known here"}'),
    (
        b'{"keytype":"DELETE_SUBJECT","subject":"orders-value","magic":0}',
        b'{"subject":"orders-value","version":1}',
    ),
]
KARAPACE = [
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FORWARD"}'),
    (
        b'{"magic":1,"version":3,"subject":"pages","keytype":"SCHEMA"}',
        b'{"subject": "pages", "version": 3, "id": 7, "schema": "{\\"type\\": \\"object\\"}", "deleted": false, "schemaType": "JSON"}',
    ),
]


def state_of(written: list[tuple[bytes, bytes | None]]) -> State:
    state = State()
    for offset, (key, value) in enumerate(written):
        assert state.apply(key, value, offset) is Applied.YES
    return state


def test_what_confluents_registry_wrote() -> None:
    state = state_of(CONFLUENT)
    assert list(state.subjects) == ["orders-value", "item", "basket", ":.eu:orders-value"]
    assert state.latest("orders-value") is None
    assert state.versions("orders-value", deleted=True)[0].content() == Content('"string"')
    basket = state.entry("basket", 1)
    assert basket is not None
    assert basket.content().references == (Reference("item.proto", "item", 1),)
    assert [each.subject for each in state.referrers("item", 1, deleted=False)] == ["basket"]
    assert state.config(None) == {"compatibilityLevel": "FULL"}
    assert state.config("orders-value") == {"compatibilityLevel": "NONE"}
    assert state.mode("item") == "READONLY"
    assert state.contexts() == [".eu"]
    assert (state.highest_id("."), state.highest_id(".eu")) == (3, 1)


def test_what_karapace_wrote_is_replaced_under_its_own_keys() -> None:
    state = state_of(KARAPACE)
    assert state.entry("pages", 3) is not None
    assert state.key(records.SCHEMA, "pages", 3) == KARAPACE[1][0]
    assert state.key(records.CONFIG, None) == KARAPACE[0][0]


def test_what_is_written_here_has_confluents_form() -> None:
    content = CONFLUENT[3][1]
    assert content is not None
    read = records.read_schema(content).content()
    assert records.schema_value("basket", 1, 3, read) == content
    assert records.schema_key("basket", 1) == CONFLUENT[3][0]
    assert records.subject_key(records.CONFIG, None) == CONFLUENT[4][0]
    assert records.config_value("orders-value", {"compatibilityLevel": "NONE"}) == CONFLUENT[5][1]
    assert records.mode_value("item", "READONLY") == CONFLUENT[6][1]
    assert (records.context_key(".eu"), records.context_value(".eu")) == CONFLUENT[7]
    assert records.subject_key(records.DELETE_SUBJECT, "orders-value") == CONFLUENT[10][0]
    assert records.deletion_value("orders-value", 1) == CONFLUENT[10][1]
    assert CONFLUENT[0][0] == records.NOOP_KEY


def test_an_id_belongs_to_the_first_schema_that_has_it() -> None:
    state = State()
    one, other = (Content('"int"'), Content('"long"'))
    assert state.apply(records.schema_key("a", 1), records.schema_value("a", 1, 5, one), 0) is Applied.YES
    assert (
        state.apply(records.schema_key("b", 1), records.schema_value("b", 1, 5, other), 1) is Applied.ID_TAKEN
    )
    assert state.apply(records.schema_key("c", 1), records.schema_value("c", 1, 5, one), 2) is Applied.YES
    assert [entry.subject for entry in state.by_id(".", 5)] == ["a", "c"]
    assert state.entry("b", 1) is None


def test_what_cannot_be_read_is_left_out() -> None:
    state = State()
    assert state.apply(b"\xff", b"{}", 0) is Applied.UNREADABLE
    assert state.apply(records.schema_key("a", 1), b'{"subject":"a"}', 1) is Applied.UNREADABLE
    assert state.apply(None, b"{}", 2) is Applied.UNREADABLE
    assert state.end == 3


def test_a_tombstone_takes_a_version_away_and_keeps_its_id_from_being_given_again() -> None:
    state = State()
    state.apply(records.schema_key("a", 1), records.schema_value("a", 1, 5, Content('"int"')), 0)
    state.apply(records.schema_key("a", 1), None, 1)
    assert state.subjects == {}
    assert state.by_id(".", 5) == []
    assert state.highest_id(".") == 5
