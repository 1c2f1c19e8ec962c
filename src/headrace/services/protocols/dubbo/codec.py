"""Calls and results as the bodies of frames.

A request is: protocol version, path, service version, method, descriptor of the parameters, the arguments, the
attachments. A result is: what kind it is, the value or exception, the attachments. What repeats from call to call
(everything before the arguments, and the attachments) is recognised by its bytes and decoded only once.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.services.hessian2 import Decoder, Encoder, Hessian2Error, brief, encode
from headrace.services.interface import MethodModel
from headrace.services.invocation import Attachments, Result
from headrace.services.javatypes import split_descriptor
from headrace.services.protocols.dubbo.frame import EVENT, HEADER, HEADER_SIZE, HESSIAN2, MAGIC, Status, frame
from headrace.services.release import PROTOCOL_VERSION

HEARTBEAT_BODY = b"N"
READONLY_BODY = encode("R")

_PLACE_FOR_HEADER = bytes(HEADER_SIZE)
_WITH_EXCEPTION, _VALUE, _NULL = 0, 1, 2
_WITH_ATTACHMENTS = 3  # added to each of the above
_RESULT_HEADS = [_PLACE_FOR_HEADER + encode(kind) for kind in range(6)]
_OK = int(Status.OK)
_TAIL = encode({"dubbo": PROTOCOL_VERSION})  # the attachments of nearly every reply
_MAX_ROUTES = 4096
_MAX_TAILS = 1024
_MAX_TAIL_BYTES = 1024


class Route:
    """What a request's first five strings say, decoded once."""

    __slots__ = (
        "count",
        "head",
        "keys",
        "method_name",
        "parameter_types",
        "path",
        "reply_attachments",
        "version",
    )

    def __init__(
        self, head: bytes, dubbo: str, path: str, version: str, method_name: str, parameter_types: str
    ) -> None:
        self.head = head  # the strings as they came; a body that begins with them has this route
        self.path = path
        self.version = version
        self.method_name = method_name
        self.parameter_types = parameter_types
        self.count = len(split_descriptor(parameter_types))
        self.reply_attachments = supports_reply_attachments(dubbo)
        # By what the attachments say of path, version and group, the key of the export.
        self.keys: dict[tuple[object, object, object], str] = {}


class RequestDecoder:
    """Decodes the requests of one server, remembering what repeats within fixed limits."""

    def __init__(self) -> None:
        self._routes: dict[bytes, Route] = {}
        self._latest: Route | None = None
        self._tails: dict[bytes, Attachments] = {}

    def decode(self, body: bytes) -> tuple[Route, list[object], Attachments]:
        """The route, arguments and attachments of a request; raises Hessian2Error."""
        route = self._latest
        if route is None or not body.startswith(route.head):
            route = self._find_route(body)
        arguments: list[object] = []
        if not route.count:
            return route, arguments, self._attachments(body, len(route.head), None)
        decoder = Decoder(body)
        decoder.pos = len(route.head)
        for _ in range(route.count):
            arguments.append(decoder.decode())
        return route, arguments, self._attachments(body, decoder.pos, decoder)

    def _find_route(self, body: bytes) -> Route:
        head = body[: _skip_five_strings(body)]
        route = self._routes.get(head)
        if route is None:
            route = _read_route(Decoder(body))
            if route.head != head or len(self._routes) >= _MAX_ROUTES:
                return route
            self._routes[head] = route
        self._latest = route
        return route

    def _attachments(self, body: bytes, start: int, decoder: Decoder | None) -> Attachments:
        tail = body[start:]
        known = self._tails.get(tail)
        if known is not None:
            return known.copy()
        if decoder is None:
            decoder = Decoder(body)
            decoder.pos = start
        attachments = decoder.decode()
        if attachments is None:
            return {}
        if not isinstance(attachments, dict):
            raise Hessian2Error("The attachments of a request are a map, and these are not.")
        plain = all(isinstance(key, str) and isinstance(value, str) for key, value in attachments.items())
        # Only an untyped map of strings means the same whatever came before it in the body.
        if plain and tail[:1] == b"H" and len(tail) <= _MAX_TAIL_BYTES and not decoder.remaining:
            if len(self._tails) >= _MAX_TAILS:
                self._tails.clear()
            self._tails[tail] = attachments.copy()
        return {str(key): value for key, value in attachments.items()} if not plain else attachments


def _read_route(decoder: Decoder) -> Route:
    strings = [decoder.decode() for _ in range(5)]
    # A consumer may send null for what it does not know: an absent version, or a path left to the attachments.
    if any(not isinstance(each, str | None) for each in strings) or not isinstance(strings[3], str):
        raise Hessian2Error("A request begins with five strings, and this one does not.")
    try:
        return Route(decoder.data[: decoder.pos], *(each or "" for each in strings))
    except ValueError as error:
        raise Hessian2Error(f"The parameters' types cannot be read: {error}.") from None


def _skip_five_strings(body: bytes) -> int:
    """Where five strings end if all of them are short and ASCII; only a key, checked by decoding once."""
    position = 0
    try:
        for _ in range(5):
            tag = body[position]
            if tag < 0x20:
                position += 1 + tag
            elif 0x30 <= tag <= 0x33:
                position += 2 + ((tag & 3) << 8) + body[position + 1]
            elif tag == 0x4E:  # null
                position += 1
            else:
                return 0
    except IndexError:
        return 0
    return position


def supports_reply_attachments(version: str) -> bool:
    """Whether a consumer of this protocol version reads attachments of replies."""
    numbers = []
    for part in version.split(".")[:4]:
        digits = "".join(c for c in part if c.isdecimal())
        if not digits:
            return False
        numbers.append(int(digits))
    if len(numbers) < 3:
        return False
    major, minor, micro = numbers[:3]
    if (2, 0, 10) <= (major, minor, micro) <= (2, 6, 2) or (major, minor) == (2, 8):
        return False
    return (major, minor, micro) >= (2, 0, 2)


# -- requests ------------------------------------------------------------------------------------------------


def request_prefix(path: str, version: str, method_name: str, parameter_types: str) -> bytes:
    """Everything of a request before its arguments."""
    encoder = Encoder()
    encoder.encode_many((PROTOCOL_VERSION, path, version, method_name, parameter_types))
    return encoder.getvalue()


def encode_request(
    flags: int,
    request_id: int,
    prefix: bytes,
    method: MethodModel | None,
    arguments: Sequence[object],
    attachments: Attachments,
) -> bytearray:
    """A whole request frame."""
    encoder = Encoder()
    out = encoder.out
    out += _PLACE_FOR_HEADER
    out += prefix
    if method is not None and len(method.parameters) == len(arguments):
        for parameter, argument in zip(method.parameters, arguments, strict=True):
            encoder.encode(argument, parameter.write)
    else:
        encoder.encode_many(arguments)
    encoder.encode(attachments)
    HEADER.pack_into(out, 0, MAGIC, flags | HESSIAN2, 0, request_id, len(out) - HEADER_SIZE)
    return out


# -- results -------------------------------------------------------------------------------------------------


def encode_result(
    request_id: int, result: Result, method: MethodModel | None, attachments: bool
) -> bytearray:
    """A whole response frame that carries a result; raises Hessian2Error for a value that cannot travel."""
    encoder = Encoder()
    out = encoder.out
    extra = _WITH_ATTACHMENTS if attachments else 0
    if result.exception is not None:
        out += _RESULT_HEADS[_WITH_EXCEPTION + extra]
        encoder.encode(result.exception)
    elif result.value is None:
        out += _RESULT_HEADS[_NULL + extra]
    else:
        out += _RESULT_HEADS[_VALUE + extra]
        encoder.encode(result.value, None if method is None else method.write_result)
    if attachments:
        if result.attachments:
            encoder.encode({**result.attachments, "dubbo": PROTOCOL_VERSION})
        else:
            out += _TAIL
    HEADER.pack_into(out, 0, MAGIC, HESSIAN2, _OK, request_id, len(out) - HEADER_SIZE)
    return out


def encode_error(request_id: int, status: Status, message: str) -> bytes:
    return frame(0, status, request_id, encode(message))


def decode_error(body: bytes) -> str:
    """The message of a response of any other status; raises Hessian2Error."""
    message = Decoder(body).decode()
    return message if isinstance(message, str) else brief(message)


def decode_result(body: bytes) -> Result:
    """The result in a response of status OK; raises Hessian2Error."""
    decoder = Decoder(body)
    kind = decoder.decode()
    if not isinstance(kind, int) or not 0 <= kind <= 5:
        raise Hessian2Error(
            f"Unknown result flag, expect '0' '1' '2' '3' '4' '5', but received: {brief(kind, 40)}"
        )
    plain = kind % _WITH_ATTACHMENTS
    result = Result()
    if plain == _VALUE:
        result.value = decoder.decode()
    elif plain == _WITH_EXCEPTION:
        raised = decoder.decode()
        if not isinstance(raised, BaseException):
            raise Hessian2Error(f"Response data error, expect Throwable, but get {brief(raised, 100)}")
        result.exception = raised
    if kind >= _WITH_ATTACHMENTS:
        attachments = decoder.decode()
        if isinstance(attachments, dict):
            result.attachments = attachments
    return result


def heartbeat(request_id: int, flags: int) -> bytes:
    return frame(flags | EVENT, 0 if flags else Status.OK, request_id, HEARTBEAT_BODY)
