"""The reply to a request that carries an error wherever the API has a place for one: at the top, per topic, per
partition, per group. Found from the shapes of request and response, so it holds for every API.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.wire.errors import ErrorCode
from headrace.wire.schema import Field, Message, Request, Response

_PARTITION = ("partition_index", "partition", "index", "partition_id")
_IDENTITY = {*_PARTITION, "resource_type", "producer_id"}


def refusal(request: Request, version: int, response: type[Response], code: ErrorCode) -> Response:
    reply = response()
    _fill(reply, request, version, code)
    return reply


def _fill(target: Message, source: object, version: int, code: ErrorCode) -> None:
    for field in target.FIELDS:
        if not _in(field, version):
            continue
        if field.name.endswith("error_code"):
            setattr(target, field.name, code)
        elif field.array and field.struct is not None and _tells_errors(field.struct):
            rows = []
            for element in _counterparts(field, source, version):
                row = field.struct()
                _fill(row, element, version, code)
                rows.append(row)
            setattr(target, field.name, rows)
        elif not field.array and field.struct is None:
            _identify(target, field, source)


def _identify(target: Message, field: Field, source: object) -> None:
    """Copy what the error is about: a name, an id, a partition."""
    if not isinstance(source, Message):
        wanted = "string" if isinstance(source, str) else "int32"
        if field.kind == wanted and not field.name.endswith("error_message"):
            first = next(
                f for f in target.FIELDS if f.kind == wanted and not f.name.endswith("error_message")
            )
            if field is first:
                setattr(target, field.name, source)
        return
    if field.kind not in ("string", "uuid") and field.name not in _IDENTITY:
        return
    names = _PARTITION if field.name in _PARTITION else (field.name,)
    known = {each.name for each in source.FIELDS}
    for name in names:
        if name in known:
            setattr(target, field.name, getattr(source, name))
            return


def _counterparts(field: Field, source: object, version: int) -> Sequence[object]:
    """The part of the request that a list of the response answers: the one of its name, else the first."""
    if not isinstance(source, Message):
        return ()
    lists = [each for each in source.FIELDS if each.array and _in(each, version)]
    chosen = next((each for each in lists if each.name == field.name), lists[0] if lists else None)
    found: Sequence[object] | None = getattr(source, chosen.name) if chosen is not None else None
    return found or ()


def _tells_errors(struct: type[Message]) -> bool:
    return any(
        field.name.endswith("error_code") or (field.struct is not None and _tells_errors(field.struct))
        for field in struct.FIELDS
    )


def _in(field: Field, version: int) -> bool:
    return field.versions[0] <= version <= field.versions[1]
