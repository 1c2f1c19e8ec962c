"""Records whose keys and values a schema registry knows, as JSON text; everything else about them stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.failure import Exit, Failure
from headrace.client.errors import ClientError, SerializationError
from headrace.client.registry_codec import RegistryCodec
from headrace.client.registry_rest import RegistryError, RegistryRest, RegistryUnreachable

if TYPE_CHECKING:
    from confluent_kafka import Message

SUBJECT_NOT_FOUND = 40401


class Registered:
    """What commands do with a registry: its refusals end them with a sentence."""

    def __init__(self, url: str, login: str | None) -> None:
        self._codec = RegistryCodec(RegistryRest(url, login))

    def decoded(self, message: Message) -> Decoded:
        return Decoded(message, self)

    def text(self, data: bytes | None) -> bytes | None:
        """JSON, or the bytes themselves where no schema is named or it does not fit."""
        from headrace.cli.view.output import json_line

        if data is None:
            return None
        try:
            return json_line(self._codec.decode(data)).encode()
        except SerializationError:
            return data
        except ClientError as error:
            raise _failure(error) from None

    def encoded(self, subject: str, data: bytes | None, number: int) -> bytes | None:
        """A line of JSON under the newest schema of a subject."""
        import json

        if data is None:
            return None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise Failure(f"Line {number} is no JSON: {error}.") from None
        try:
            return self._codec.encode(subject, value)
        except SerializationError as error:
            raise Failure(f"Line {number}: {error}.") from None
        except RegistryError as error:
            if error.code != SUBJECT_NOT_FOUND:
                raise _failure(error) from None
            raise Failure(
                f"The registry has no schema for {subject}; 'headrace schemas register {subject} FILE' gives it one, --subject names "
                "another."
            ) from None
        except ClientError as error:
            raise _failure(error) from None


def _failure(error: ClientError) -> Failure:
    code = Exit.UNREACHABLE if isinstance(error, RegistryUnreachable) else Exit.FAILED
    return Failure(str(error), code)


class Decoded:
    """A message with its key and value decoded."""

    def __init__(self, message: Message, registered: Registered) -> None:
        self._message = message
        self._registered = registered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def key(self) -> Any:
        return self._registered.text(self._message.key())

    def value(self) -> Any:
        return self._registered.text(self._message.value())
