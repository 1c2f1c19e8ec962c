"""Whatever arrives, in whatever pieces, the frame splitter and the request decoder stay sane."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.services.hessian2 import Encoder, Hessian2Error, encode
from headrace.services.protocols.dubbo.codec import RequestDecoder, decode_result
from headrace.services.protocols.dubbo.frame import HEADER, MAGIC_BYTES, FrameSplitter

PAYLOAD = 2000


class Recorder(FrameSplitter):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__(PAYLOAD)
        self.frames: list[tuple[int, bytes]] = []
        self.too_large: list[int] = []
        self.text = bytearray()

    def on_frame(self, flags: int, status: int, request_id: int, body: bytes) -> None:
        self.frames.append((request_id, body))

    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        self.too_large.append(request_id)

    def on_text(self, data: bytes) -> None:
        self.text += data

    @property
    def kept(self) -> int:
        return len(self._kept)


def fed(data: bytes, cuts: list[int]) -> Recorder:
    recorder = Recorder()
    position = 0
    for cut in cuts:
        recorder.feed(data[position : position + cut])
        position += cut
    recorder.feed(data[position:])
    return recorder


bodies = st.binary(max_size=300)
pieces = st.lists(st.integers(1, 100), max_size=40)


@given(st.lists(bodies, max_size=8), pieces)
def test_frames_are_found_however_they_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    data = b"".join(HEADER.pack(0xDABB, 0xC2, 0, i, len(b)) + b for i, b in enumerate(contents))
    recorder = fed(data, cuts)
    assert recorder.frames == list(enumerate(contents))
    assert recorder.text == b""
    assert recorder.kept == 0


@given(st.binary(max_size=5000), pieces)
def test_no_bytes_make_the_splitter_fail_or_hoard(data: bytes, cuts: list[int]) -> None:
    recorder = fed(data, cuts)
    assert recorder.kept <= PAYLOAD + HEADER.size


@given(st.lists(st.one_of(st.just(MAGIC_BYTES), st.binary(max_size=40)), max_size=60), pieces)
def test_bytes_that_nearly_look_like_frames_do_no_harm(parts: list[bytes], cuts: list[int]) -> None:
    recorder = fed(b"".join(parts), cuts)
    assert recorder.kept <= PAYLOAD + HEADER.size


@example(text=bytes(12), body=b"", cuts=[13])
@example(bytes(16), b"", [17])  # the cut falls between the two bytes of the magic number
@given(st.binary(max_size=200).filter(lambda t: b"\xda" not in t), bodies, pieces)
def test_a_frame_is_found_after_text(text: bytes, body: bytes, cuts: list[int]) -> None:
    recorder = fed(text + HEADER.pack(0xDABB, 0xC2, 0, 7, len(body)) + body, cuts)
    assert recorder.frames == [(7, body)]
    assert bytes(recorder.text) == text


@given(st.integers(PAYLOAD + 1, 50_000), bodies, pieces)
def test_a_refused_frame_is_passed_over_whole(length: int, body: bytes, cuts: list[int]) -> None:
    data = HEADER.pack(0xDABB, 0xC2, 0, 1, length) + b"\xda\xbb" * (length // 2) + b"x" * (length % 2)
    data += HEADER.pack(0xDABB, 0xC2, 0, 2, len(body)) + body
    recorder = fed(data, cuts)
    assert recorder.too_large == [1]
    assert recorder.frames == [(2, body)]


def decoded(decoder: RequestDecoder, body: bytes) -> object:
    try:
        route, arguments, attachments = decoder.decode(body)
    except Hessian2Error:
        return None
    return route.path, route.method_name, arguments, attachments


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_a_body_of_any_bytes_is_decoded_or_refused(body: bytes) -> None:
    decoded(RequestDecoder(), body)
    try:
        decode_result(body)
    except Hessian2Error:
        pass


def request(path: str, arguments: list[object], attachments: dict[str, str]) -> bytes:
    encoder = Encoder()
    types = "Ljava/lang/Object;" * len(arguments)
    encoder.encode_many(("2.0.2", path, "0.0.0", "call", types, *arguments, attachments))
    return encoder.getvalue()


texts = st.text(max_size=40)
values = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), texts, st.binary(max_size=40))


@given(
    st.lists(
        st.tuples(texts, st.lists(values, max_size=3), st.dictionaries(texts, texts, max_size=3)), max_size=6
    )
)
def test_what_is_remembered_never_changes_what_is_read(
    calls: list[tuple[str, list[object], dict[str, str]]],
) -> None:
    remembering = RequestDecoder()
    for path, arguments, attachments in [*calls, *calls]:
        body = request(path, arguments, attachments)
        assert decoded(remembering, body) == (path, "call", arguments, attachments)
        assert decoded(RequestDecoder(), body) == (path, "call", arguments, attachments)


@settings(max_examples=300)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_flipped_byte_reads_the_same_with_and_without_memory(place: int, byte: int) -> None:
    body = bytearray(
        request("com.acme.Shop", ["tea", 5], {"path": "com.acme.Shop", "interface": "com.acme.Shop"})
    )
    warm = RequestDecoder()
    decoded(warm, bytes(body))
    body[place % len(body)] = byte
    assert decoded(warm, bytes(body)) == decoded(RequestDecoder(), bytes(body))


def test_attachments_handed_out_are_not_the_remembered_ones() -> None:
    decoder = RequestDecoder()
    body = request("p", [], {"a": "1"})
    _, _, first = decoder.decode(body)
    first["b"] = "2"
    assert decoder.decode(body)[2] == {"a": "1"}
    assert encode(None) == b"N"
