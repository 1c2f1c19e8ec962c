"""Authentication and permissions: users or tokens from one file, permissions by subject from another.

Passwords are kept as brokers keep them (SCRAM's stored key), so the file does not tell them. A file is read again when it changes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from headrace.registry.errors import RegistryError
from headrace.registry.settings import Authentication, SettingError, Settings
from headrace.wire.sasl.scram import ScramCredential

_MECHANISM, _ITERATIONS = "SCRAM-SHA-256", 8192
_TOKEN = "SHA-256"
_KNOWN = 1000


class Right(StrEnum):
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    CONFIGURE = "configure"
    """Levels, modes and contexts."""


@dataclass(frozen=True, slots=True)
class Permission:
    allows: bool
    user: str
    rights: frozenset[Right]
    pattern: str

    def covers(self, user: str, right: Right, subject: str | None) -> bool:
        if self.user not in ("*", user) or right not in self.rights:
            return False
        if self.pattern == "*":
            return True
        if subject is None:
            return False
        return (
            subject.startswith(self.pattern[:-1]) if self.pattern.endswith("*") else subject == self.pattern
        )


def kept_password(password: str) -> str:
    """What the file of users holds of a password."""
    credential = ScramCredential.of_password(_MECHANISM, password, secrets.token_bytes(16), _ITERATIONS)
    salt, key = (base64.b64encode(each).decode() for each in (credential.salt, credential.stored_key))
    return f"{_MECHANISM}${_ITERATIONS}${salt}${key}"


def kept_token(token: str) -> str:
    """What the file of users holds of a token."""
    return f"{_TOKEN}${hashlib.sha256(token.encode()).hexdigest()}"


class _File:
    """A file of lines that is read again when it changes."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._path = Path(path)
        self._seen: tuple[int, int] | None = None

    def changed(self) -> list[str] | None:
        """Its lines, without comments, when they are not those read last. SettingError when it cannot be read."""
        try:
            status = self._path.stat()
            seen = status.st_mtime_ns, status.st_size
            if seen == self._seen:
                return None
            lines = self._path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"{self._name}: {self._path} cannot be read: {error}") from None
        self._seen = seen
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]

    def wrong(self, line: str, form: str) -> SettingError:
        return SettingError(f"{self._name}: {self._path} has the line '{line}'; it takes {form}.")


class Gate:
    def __init__(self, settings: Settings) -> None:
        self._method = settings.authentication
        self._realm = settings.text("authentication.realm")
        self._users_file = _File(
            "headrace.registry.users.file", settings.text("headrace.registry.users.file")
        )
        acls = settings.text("headrace.registry.acls.file")
        self._acls_file = _File("headrace.registry.acls.file", acls) if acls else None
        self._users: dict[str, str] = {}
        self._permissions: list[Permission] = []
        self._known: OrderedDict[bytes, str] = OrderedDict()
        """Headers that have been judged, by their digest: hashing a password takes milliseconds."""
        self.refresh()

    @property
    def judges(self) -> bool:
        """Whether there are permissions; without them, everyone who can log in may do everything."""
        return self._acls_file is not None

    def refresh(self) -> None:
        """Read the files again if they changed. SettingError when they cannot be meant."""
        lines = self._users_file.changed()
        if lines is not None:
            users = {}
            for line in lines:
                name, colon, kept = line.partition(":")
                if not colon or not name.strip() or not kept.strip():
                    raise self._users_file.wrong(
                        line, "NAME: PASSWORD, or what 'headrace schemas user' prints"
                    )
                users[name.strip()] = kept.strip()
            self._users = users
            self._known.clear()
        lines = self._acls_file.changed() if self._acls_file is not None else None
        if lines is not None:
            self._permissions = [self._permission(line) for line in lines]

    def _permission(self, line: str) -> Permission:
        assert self._acls_file is not None
        try:
            what, user, operations, pattern = line.split()
            listed = Right if operations == "all" else map(Right, operations.split(","))
            if what not in ("allow", "deny") or "*" in pattern[:-1]:
                raise ValueError
        except ValueError:
            raise self._acls_file.wrong(
                line, "allow|deny USER OPERATION,… SUBJECT, such as: allow ada read,write orders-*"
            ) from None
        return Permission(what == "allow", user.removeprefix("User:"), frozenset(listed), pattern)

    def who(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The user of a request. RegistryError without valid credentials."""
        given = next((value for name, value in headers if name == b"authorization"), None)
        if given is None:
            raise self._refusal()
        digest = hashlib.sha256(given).digest()
        user = self._known.get(digest)
        if user is None:
            user = self._judge(given)
            self._known[digest] = user
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return user

    def _judge(self, header: bytes) -> str:
        scheme, _, value = header.decode("latin-1").partition(" ")
        if self._method is Authentication.BASIC and scheme.lower() == "basic":
            try:
                name, _, password = base64.b64decode(value, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                raise self._refusal() from None
            if _is_password(self._users.get(name), password):
                return name
        elif self._method is Authentication.BEARER and scheme.lower() == "bearer":
            for name, kept in self._users.items():
                if _is_token(kept, value.strip()):
                    return name
        raise self._refusal()

    def _refusal(self) -> RegistryError:
        return RegistryError(401, "Unauthorized")

    def challenge(self) -> bytes:
        """The WWW-Authenticate header of a refusal."""
        scheme = "Basic" if self._method is Authentication.BASIC else "Bearer"
        return f'{scheme} realm="{self._realm}"'.encode()

    def may(self, user: str, right: Right, subject: str | None) -> bool:
        """A denial wins; what nobody allows is refused. None stands for everything at once."""
        if self._acls_file is None:
            return True
        found = [each for each in self._permissions if each.covers(user, right, subject)]
        return bool(found) and all(each.allows for each in found)


def _is_password(kept: str | None, given: str) -> bool:
    if kept is None:
        return False
    mechanism, _, rest = kept.partition("$")
    if mechanism != _MECHANISM:
        return hmac.compare_digest(kept.encode(), given.encode())
    try:
        iterations, salt, key = rest.split("$")
        credential = ScramCredential.of_password(_MECHANISM, given, base64.b64decode(salt), int(iterations))
        return hmac.compare_digest(credential.stored_key, base64.b64decode(key))
    except (ValueError, binascii.Error):
        return False


def _is_token(kept: str, given: str) -> bool:
    return hmac.compare_digest(
        kept.encode(), (kept_token(given) if kept.startswith(f"{_TOKEN}$") else given).encode()
    )


def denied(right: Right, subject: str | None) -> RegistryError:
    where = "Cluster" if subject is None else f"Subject: {subject}"
    return RegistryError(40301, f"User is denied operation {right.capitalize()} on {where}")
