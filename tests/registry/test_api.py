"""Confluent's API, request by request: what is answered, and with which code and sentence something is refused."""

import json
from typing import Any

import pytest

from tests.registry.conftest import Rest, record

FULL = {"Confluent-Accept-Unknown-Properties": "true"}


def test_a_schema_is_registered_once_and_found_by_id_version_and_text(rest: Rest) -> None:
    number = rest.register("api-one", record("One", "a"))
    assert (
        rest.register("api-one", '{ "fields": [{"type":"int","name":"a"}], "name":"One", "type":"record"}')
        == number
    )
    assert rest.register("api-one-too", record("One", "a")) == number
    text = '{"type":"record","name":"One","fields":[{"name":"a","type":"int"}]}'
    assert rest("GET", f"/schemas/ids/{number}") == (200, {"schema": text})
    version = {"subject": "api-one", "version": 1, "id": number, "schema": text}
    assert rest("GET", "/subjects/api-one/versions/1") == (200, version)
    assert rest("GET", "/subjects/api-one/versions/latest") == (200, version)
    assert rest("POST", "/subjects/api-one", {"schema": text}) == (200, version)
    assert rest("GET", "/subjects/api-one/versions") == (200, [1])
    assert rest("GET", f"/schemas/ids/{number}/subjects") == (200, ["api-one", "api-one-too"])
    assert rest("GET", f"/schemas/ids/{number}/versions") == (
        200,
        [{"subject": "api-one", "version": 1}, {"subject": "api-one-too", "version": 1}],
    )
    assert rest("GET", f"/schemas/ids/{number}/schema")[1] == json.loads(text)
    assert rest("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])


def test_newer_clients_are_told_more_and_older_ones_are_not(rest: Rest) -> None:
    body = {"schema": json.dumps(record("Told", "a"))}
    status, found = rest("POST", "/subjects/api-told/versions", body, **FULL)
    assert status == 200
    assert found.keys() == {"id", "version", "guid"}
    assert rest("POST", "/subjects/api-told/versions", body) == (200, {"id": found["id"]})
    _, by_guid = rest("GET", f"/schemas/guids/{found['guid']}", **FULL)
    assert by_guid.keys() == {"guid", "schemaType", "schema"}
    assert rest("GET", f"/schemas/guids/{found['guid']}/ids") == (200, [{"context": ".", "id": found["id"]}])
    assert rest("GET", f"/schemas/ids/{found['id']}", **FULL)[1]["guid"] == found["guid"]
    assert "guid" not in rest("GET", f"/schemas/ids/{found['id']}")[1]
    assert rest("GET", f"/schemas/ids/{found['id']}", **{"If-None-Match": f'"{found["guid"]}"'}) == (
        304,
        None,
    )


def test_deleting_softly_and_for_good(rest: Rest) -> None:
    first = rest.register("api-gone", record("Gone", "a"))
    rest.register("api-gone", record("Gone", "a", "b?"))
    assert rest("DELETE", "/subjects/api-gone/versions/1?permanent=true")[1]["error_code"] == 40407
    assert rest("DELETE", "/subjects/api-gone/versions/1") == (200, 1)
    assert rest("DELETE", "/subjects/api-gone/versions/1")[1]["error_code"] == 40406
    assert rest("GET", "/subjects/api-gone/versions/1") == (
        404,
        {"error_code": 40402, "message": "Version 1 not found."},
    )
    assert rest("GET", "/subjects/api-gone/versions/1?deleted=true")[1]["id"] == first
    assert rest("GET", f"/schemas/ids/{first}")[0] == 200
    assert rest("GET", "/subjects/api-gone/versions?deleted=true") == (200, [1, 2])
    assert rest("GET", "/subjects/api-gone/versions?deletedOnly=true") == (200, [1])
    assert rest("GET", "/subjects/api-gone/versions?deletedAsNegative=true") == (200, [-1, 2])
    assert rest("DELETE", "/subjects/api-gone/versions/1?permanent=true") == (200, 1)
    assert rest("DELETE", "/subjects/api-gone?permanent=true")[1]["error_code"] == 40405
    assert rest("DELETE", "/subjects/api-gone") == (200, [2])
    assert rest("DELETE", "/subjects/api-gone")[1]["error_code"] == 40404
    assert "api-gone" not in rest("GET", "/subjects")[1]
    assert rest("GET", "/subjects?deletedOnly=true&subjectPrefix=api-gone") == (200, ["api-gone"])
    assert rest("DELETE", "/subjects/api-gone?permanent=true") == (200, [2])
    assert rest("DELETE", "/subjects/api-gone") == (
        404,
        {"error_code": 40401, "message": "Subject 'api-gone' not found."},
    )


def test_ids_and_versions_of_what_was_deleted_are_not_given_again(rest: Rest) -> None:
    first = rest.register("api-again", record("Again", "a"))
    rest("DELETE", "/subjects/api-again")
    rest("DELETE", "/subjects/api-again?permanent=true")
    assert rest.register("api-again", record("Again", "a")) > first


def test_a_schema_comes_back_with_its_id_after_it_was_deleted_softly(rest: Rest) -> None:
    first = rest.register("api-back", record("Back", "a"))
    rest("DELETE", "/subjects/api-back")
    assert rest.register("api-back", record("Back", "a")) == first
    assert rest("GET", "/subjects/api-back/versions") == (200, [2])


def test_incompatible_schemas_are_refused_with_the_reason(rest: Rest) -> None:
    rest.register("api-strict", record("Strict", "a"))
    wrong = {"schema": json.dumps(record("Strict", "a", "b"))}
    status, found = rest("POST", "/subjects/api-strict/versions", wrong)
    assert (status, found["error_code"]) == (409, 40901)
    assert found["message"].startswith(
        'Schema being registered is incompatible with an earlier schema for subject "api-strict", details: '
        "[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new schema has no "
        "default value and is missing in the old schema', additionalInfo:'b'}, {oldSchemaVersion: 1}, {oldSchema: "
    )
    assert found["message"].endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")
    path = "/compatibility/subjects/api-strict/versions"
    assert rest("POST", f"{path}/latest", wrong) == (200, {"is_compatible": False})
    status, found = rest("POST", f"{path}?verbose=true", wrong)
    assert not found["is_compatible"]
    assert found["messages"][0].startswith("{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'")
    right = {"schema": json.dumps(record("Strict", "a", "b?"))}
    assert rest("POST", f"{path}?verbose=true", right) == (200, {"is_compatible": True, "messages": []})
    assert rest("POST", f"{path}/7", right)[1]["error_code"] == 40402


@pytest.mark.parametrize(
    ("level", "fields", "allowed"),
    [
        ("NONE", ("z",), True),
        ("BACKWARD", ("b",), True),
        ("BACKWARD", ("a", "b", "c"), False),
        ("BACKWARD_TRANSITIVE", ("b",), False),
        ("FORWARD", ("a", "b", "c"), True),
        ("FORWARD", (), False),
        ("FORWARD_TRANSITIVE", ("b",), False),
        ("FULL", ("a", "b", "c?"), True),
        ("FULL", ("b",), False),
        ("FULL_TRANSITIVE", ("a", "b?", "c?"), True),
    ],
)
def test_the_seven_levels(rest: Rest, level: str, fields: tuple[str, ...], allowed: bool) -> None:
    subject = f"api-level-{level}-{'-'.join(fields).replace('?', 'q')}"
    rest.register(subject, record("Level", "a"))
    rest("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    rest.register(subject, record("Level", "a", "b" + "?" * (not level.startswith("FORWARD"))))
    assert rest("PUT", f"/config/{subject}", {"compatibility": level}) == (200, {"compatibility": level})
    status, _ = rest(
        "POST", f"/subjects/{subject}/versions", {"schema": json.dumps(record("Level", *fields))}
    )
    assert status == (200 if allowed else 409)


def test_settings_of_a_subject_stand_above_those_of_the_context(rest: Rest) -> None:
    assert rest("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert rest("GET", "/config/api-config")[1]["error_code"] == 40408
    assert rest("GET", "/config/api-config?defaultToGlobal=true") == (200, {"compatibilityLevel": "BACKWARD"})
    changed = {"compatibility": "full", "normalize": True}
    assert rest("PUT", "/config/api-config", changed) == (200, {"compatibility": "FULL", "normalize": True})
    assert rest("PUT", "/config/api-config", {"normalize": None}) == (200, {"compatibility": "FULL"})
    assert rest("PUT", "/config/api-config", {"compatibility": "SOME"})[1]["error_code"] == 42203
    assert rest("DELETE", "/config/api-config") == (200, {"compatibilityLevel": "FULL"})
    assert rest("DELETE", "/config/api-config")[1]["error_code"] == 40401


def test_modes(rest: Rest) -> None:
    assert rest("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert rest("GET", "/mode/api-mode")[1]["error_code"] == 40409
    assert rest("PUT", "/mode/api-mode", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    body = {"schema": '"string"'}
    refused = rest("POST", "/subjects/api-mode/versions", body)[1]
    assert refused["error_code"] == 42205
    assert refused["message"] == "Subject api-mode in context  is in read-only mode"
    assert rest("PUT", "/mode/api-mode", {"mode": "IMPORT"})[0] == 200
    assert rest("POST", "/subjects/api-mode/versions", body)[1]["error_code"] == 42205
    imported = {**body, "id": 900_001, "version": 5}
    assert rest("POST", "/subjects/api-mode/versions", imported) == (200, {"id": 900_001})
    assert rest("GET", "/subjects/api-mode/versions") == (200, [5])
    other = {"schema": '"int"', "id": 900_001}
    assert rest("POST", "/subjects/api-mode/versions", other)[1]["error_code"] == 42205
    assert rest("DELETE", "/mode/api-mode") == (200, {"mode": "IMPORT"})
    assert rest.register("api-mode-after", record("After", "a")) > 900_001
    assert rest("PUT", "/mode/api-mode", {"mode": "IMPORT"})[1]["message"].startswith("Cannot import")
    assert rest("PUT", "/mode/api-mode", {"mode": "SOME"})[1]["error_code"] == 42204


def test_references(rest: Rest) -> None:
    inner = rest.register("api-inner", record("Inner", "a", namespace="x"))
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "x.Inner"}]}
    references = [{"name": "x.Inner", "subject": "api-inner", "version": 1}]
    number = rest.register("api-outer", outer, references=references)
    assert rest("GET", f"/schemas/ids/{number}")[1]["references"] == references
    assert "Inner" in rest("GET", f"/schemas/ids/{number}?format=resolved")[1]["schema"]
    assert rest("GET", "/subjects/api-inner/versions/1/referencedby") == (200, [number])
    refused = rest("DELETE", "/subjects/api-inner/versions/1")[1]
    assert refused["error_code"] == 42206
    assert "subject=api-inner,version=1" in refused["message"]
    assert rest("DELETE", "/subjects/api-inner")[1]["error_code"] == 42206
    rest("DELETE", "/subjects/api-outer")
    assert rest("DELETE", "/subjects/api-inner") == (200, [1])
    assert rest("DELETE", "/subjects/api-inner?permanent=true")[1]["error_code"] == 42206
    missing = {
        "schema": json.dumps(outer),
        "references": [{"name": "x.Inner", "subject": "no", "version": 1}],
    }
    refused = rest("POST", "/subjects/api-outer/versions", missing)[1]
    assert refused["error_code"] == 42201
    assert 'No schema reference found for subject "no" and version 1' in refused["message"]
    assert inner > 0


def test_contexts_have_ids_and_settings_of_their_own(rest: Rest) -> None:
    number = rest.register(":.api-ctx:orders", record("Ctx", "a"))
    assert number == 1
    assert rest("GET", "/contexts")[1][:1] == ["."]
    assert ".api-ctx" in rest("GET", "/contexts")[1]
    assert rest("GET", "/contexts/.api-ctx/subjects") == (200, [":.api-ctx:orders"])
    assert rest("GET", "/contexts/.api-ctx/subjects/orders/versions") == (200, [1])
    assert rest("GET", "/schemas/ids/1?subject=:.api-ctx:")[0] == 200
    assert rest("GET", "/subjects/orders/versions/1")[1]["subject"] == ":.api-ctx:orders"
    assert rest("PUT", "/config/:.api-ctx:", {"compatibility": "NONE"})[0] == 200
    found = rest("GET", "/config/:.api-ctx:orders?defaultToGlobal=true")[1]
    assert found["compatibilityLevel"] == "NONE"
    assert rest("DELETE", "/contexts/.api-ctx")[1]["error_code"] == 42211
    rest("DELETE", "/subjects/:.api-ctx:orders")
    rest("DELETE", "/subjects/:.api-ctx:orders?permanent=true")
    assert rest("DELETE", "/contexts/.api-ctx") == (204, None)
    assert ".api-ctx" not in rest("GET", "/contexts")[1]


def test_metadata_and_rules_are_kept_and_handed_on_to_the_next_version(rest: Rest) -> None:
    metadata = {"properties": {"owner": "ada"}, "tags": {"**.a": ["PII"]}}
    rules = {
        "domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]
    }
    rest.register("api-rules", record("Rules", "a"), metadata=metadata, ruleSet=rules)
    rest.register("api-rules", record("Rules", "a", "b?"))
    found = rest("GET", "/subjects/api-rules/versions/2")[1]
    assert (found["metadata"], found["ruleSet"]) == (metadata, rules)
    found = rest("GET", "/subjects/api-rules/metadata?key=owner&value=ada")[1]
    assert found["version"] == 2
    assert rest("GET", "/subjects/api-rules/metadata?key=owner&value=bob")[1]["error_code"] == 40403
    wrong = {"domainRules": [{"name": "r", "mode": "UPGRADE", "type": "CEL"}]}
    body = {"schema": json.dumps(record("Rules", "a")), "ruleSet": wrong}
    assert rest("POST", "/subjects/api-rules/versions", body)[1]["error_code"] == 42210


def test_normalizing_finds_what_only_looks_different(rest: Rest) -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}}}
    other = {"properties": {"a": {"type": "string"}}, "type": "object"}
    number = rest.register("api-normal", one, "JSON")
    body = {"schema": json.dumps(other), "schemaType": "JSON"}
    assert rest("POST", "/subjects/api-normal", body)[1]["error_code"] == 40403
    normal = rest(
        "POST", "/subjects/api-normalized/versions?normalize=true", {**body, "schema": json.dumps(one)}
    )
    assert rest("POST", "/subjects/api-normalized/versions?normalize=true", body) == normal
    assert rest("POST", "/subjects/api-normalized?normalize=true", body)[1]["version"] == 1
    assert number > 0


def test_an_alias_stands_for_another_subject(rest: Rest) -> None:
    rest.register("api-real", record("Real", "a"))
    rest("PUT", "/config/api-alias", {"alias": "api-real"})
    assert rest("GET", "/subjects/api-alias/versions/latest")[1]["subject"] == "api-real"


def test_pages_and_prefixes(rest: Rest) -> None:
    for number in range(4):
        rest.register(f"api-page-{number}", record(f"Page{number}", "a"))
    assert rest("GET", "/subjects?subjectPrefix=api-page-&offset=1&limit=2") == (
        200,
        ["api-page-1", "api-page-2"],
    )
    found = rest("GET", "/schemas?subjectPrefix=api-page-&latestOnly=true&limit=3")[1]
    assert [each["subject"] for each in found] == ["api-page-0", "api-page-1", "api-page-2"]


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", 400),
        (b"[]", 422),
        ({"schema": "{}"}, 42201),
        ({"schema": "{"}, 42201),
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": 5}, 422),
        ({"schema": nested(5000)}, 42201),
        ({"schema": nested(300)}, 42201),
        ({"schema": "[" * 100_000}, 42201),
        ({"schema": '"string"', "schemaType": "XML"}, 42201),
        ({"schema": '"string"', "references": [{"name": "x"}]}, 422),
        ({"schema": '{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}'}, 42201),
        (
            {"schema": '{"type":"record","name":"A","fields":[{"name":"b","type":"int","default":"x"}]}'},
            42201,
        ),
        ({"schema": '{"$ref":"http://127.0.0.1:1/never.json"}', "schemaType": "JSON"}, 42201),
        ({"schema": '{"$ref":"file:///etc/passwd"}', "schemaType": "JSON"}, 42201),
        ({"schema": '{"$ref":"#"}', "schemaType": "JSON"}, 42201),
        ({"schema": '{"type":"nothing"}', "schemaType": "JSON"}, 42201),
        ({"schema": "5", "schemaType": "JSON"}, 42201),
        ({"schema": "message M { string a = 1; }", "schemaType": "PROTOBUF"}, 42201),
        ({"schema": 'syntax = "proto3"; import "x.proto";', "schemaType": "PROTOBUF"}, 42201),
        ({"schema": 'syntax = "proto3";' + "message M {" * 2000, "schemaType": "PROTOBUF"}, 42201),
    ],
)
def test_bad_schemas_are_refused_in_confluents_form(rest: Rest, body: Any, code: int) -> None:
    status, found = rest("POST", "/subjects/api-bad/versions", body)
    assert found["error_code"] == code, found
    assert status == (code // 100 if code > 1000 else code)
    assert found.keys() == {"error_code", "message"}


def test_a_giant_schema_is_too_large_for_the_topic(rest: Rest) -> None:
    big = record("Big", "a", doc="x" * 2_000_000)
    assert rest("POST", "/subjects/api-big/versions", {"schema": json.dumps(big)}) == (
        422,
        {"error_code": 42209, "message": "Register operation failed because schema is too large"},
    )
    assert rest("POST", "/subjects/api-big/versions", b" " * (17 << 20))[1]["error_code"] == 42209
    assert rest.register("api-big", record("Big", "a")) > 0


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/subjects/none/versions", 40401),
        ("GET", "/subjects/none/versions/1", 40401),
        ("GET", "/subjects/none/versions/zero", 42202),
        ("GET", "/subjects/none/versions/0", 42202),
        ("GET", "/schemas/ids/99999999", 40403),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/schemas/guids/x", 40403),
        ("POST", "/subjects/__GLOBAL/versions", 42208),
        ("PATCH", "/subjects", 404),
    ],
)
def test_what_is_not_there(rest: Rest, method: str, path: str, code: int) -> None:
    assert rest(method, path, {} if method == "POST" else None)[1]["error_code"] == code
