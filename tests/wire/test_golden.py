"""Messages against Java's own bytes: golden.txt.xz has every version of every message as Kafka's client jar writes it, and what it says.

`make interop` holds the file to Java; `python -m interop.kafka.golden` writes it.
"""

import base64
import json
import lzma
import uuid
from pathlib import Path

import pytest

from headrace.wire.codec import decode, encode
from headrace.wire.schema import Message, Request
from tests.wire.test_codec import MODULES, OUR_OWN, roots

CLASSES = {root.__name__: root for name in MODULES if name not in OUR_OWN for root in roots(name)}


def golden():
    lines = lzma.decompress(Path(__file__).with_name("golden.txt.xz").read_bytes()).decode().splitlines()
    found = {}
    for line in lines:
        name, version, raw, said = line.split(" ", 3)
        if name in CLASSES:
            found.setdefault(name, []).append((int(version), bytes.fromhex(raw), json.loads(said)))
    return found


GOLDEN = golden()


def java_name(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def said(message, version):
    """A message in the words of Kafka's JSON: fields that the version has, tagged ones only where they say something."""
    found = {}
    for field in message.FIELDS:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        value = getattr(message, field.name)
        if (
            field.tag is not None
            and version >= message.FLEXIBLE
            and value == getattr(type(message)(), field.name)
        ):
            continue
        if field.array and value is not None:
            found[java_name(field.name)] = [in_json(each, field, version) for each in value]
        else:
            found[java_name(field.name)] = in_json(value, field, version)
    return found


def in_json(value, field, version):
    match value:
        case Message():
            return said(value, version)
        case uuid.UUID():
            return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case bytes() if field.kind == "records":
            return ""  # Java's JSON leaves records out
        case bytes():
            return base64.b64encode(value).decode()
    return value


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_version_says_what_java_says_in_the_same_bytes(name):
    for version, raw, json_of_java in GOLDEN[name]:
        message, end = decode(CLASSES[name], version, raw)
        assert end == len(raw)
        assert said(message, version) == json_of_java, version
        assert bytes(encode(message, version)) == raw, version


def test_java_has_written_every_version():
    for name, cls in CLASSES.items():
        written = {version for version, _, _ in GOLDEN[name]}
        if issubclass(cls, Request):
            low, high = cls.VERSIONS
            assert written == set(range(1 if name == "ListOffsetsRequest" else low, high + 1)), name
