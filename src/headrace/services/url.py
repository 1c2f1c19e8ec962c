"""The URL that carries every fact about a service, its provider, its consumer or its registry.

Owns parsing, printing and the lookup rules (method settings before service settings, `default.` last).
A URL never changes: every `with_…`, `add_…` and `remove_…` returns another one. Parameter values are kept
exactly as they travel; only `…_decoded` and `…_encoded` touch percent-encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from headrace.services.errors import ConfigError

ANYHOST: Final = "0.0.0.0"
LOCALHOST: Final = "127.0.0.1"
ANY: Final = "*"

_COMMA = re.compile(r"\s*,+\s*")
_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


def encode(value: str) -> str:
    """Percent-encode as java.net.URLEncoder does, so that node names equal Java's byte for byte."""
    return quote_plus(value, safe="*").replace("~", "%7E")


def decode(value: str) -> str:
    return unquote_plus(value)


def split_commas(value: str) -> list[str]:
    return [part for part in _COMMA.split(value.strip()) if part]


def is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def build_key(path: str, group: str | None, version: str | None) -> str:
    """`group/path:version`, the name under which a service is known."""
    return f"{group + '/' if group else ''}{path}{':' + version if version else ''}"


class URL:
    """`protocol://user:password@host:port/path?key=value&…`, immutable and hashable."""

    protocol: str
    username: str | None
    password: str | None
    host: str | None
    port: int
    path: str
    parameters: Mapping[str, str]

    def __init__(
        self,
        protocol: str,
        host: str | None = None,
        port: int = 0,
        path: str = "",
        parameters: Mapping[str, str] = _EMPTY,
        *,
        username: str | None = None,
        password: str | None = None,
    ) -> None:
        if password and not username:
            raise ConfigError("a URL has a password but no username: give both or neither")
        self.protocol = protocol
        self.username = username or None
        self.password = password or None
        self.host = host or None
        self.port = max(port, 0)
        self.path = path.lstrip("/")
        self.parameters = MappingProxyType(dict(parameters))

    # -- reading -----------------------------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> URL:
        """Read a URL as Dubbo does: every part is optional, parameters stay encoded."""
        text = text.strip()
        if not text:
            raise ConfigError("a URL is empty: give protocol://host:port/path")
        body, _, query = text.partition("?")
        parameters = parse_query(query)
        protocol = ""
        if "://" in body:
            protocol, _, body = body.partition("://")
            if not protocol:
                raise ConfigError(f"the URL {text!r} has no protocol before '://'")
        elif ":/" in body:  # file:/path
            protocol, _, body = body.partition(":/")
            body = "/" + body
        authority, _, path = body.partition("/")
        user, _, address = authority.rpartition("@")
        username, _, password = user.partition(":")
        host, port = split_address(address, text)
        return cls(protocol, host, port, path, parameters, username=username, password=password)

    def get(self, key: str, default: str = "") -> str:
        return self.parameters.get(key) or self.parameters.get("default." + key) or default

    def get_decoded(self, key: str, default: str = "") -> str:
        return decode(self.get(key, default))

    def get_int(self, key: str, default: int) -> int:
        return self._int(key, self.get(key), default)

    def get_bool(self, key: str, default: bool) -> bool:
        value = self.get(key)
        return is_true(value) if value else default

    def get_list(self, key: str) -> list[str]:
        return split_commas(self.get(key))

    def method(self, method: str, key: str, default: str = "") -> str:
        """A method's own setting, else the service's."""
        return self.parameters.get(f"{method}.{key}") or self.get(key, default)

    def method_int(self, method: str, key: str, default: int) -> int:
        return self._int(key, self.method(method, key), default)

    def method_bool(self, method: str, key: str, default: bool) -> bool:
        value = self.method(method, key)
        return is_true(value) if value else default

    def _int(self, key: str, value: str, default: int) -> int:
        if not value:
            return default
        try:
            return int(value)
        except ValueError:
            raise ConfigError(f"{key}={value} in {self} is not a whole number") from None

    # -- derived -----------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        host = self.host or ""
        if not self.port:
            return host
        return f"[{host}]:{self.port}" if host.count(":") > 1 else f"{host}:{self.port}"

    @property
    def interface(self) -> str:
        return self.get("interface", self.path)

    @cached_property
    def service_key(self) -> str:
        return build_key(self.interface, self.get("group"), self.get("version"))

    @cached_property
    def path_key(self) -> str:
        return build_key(self.path or self.interface, self.get("group"), self.get("version"))

    @property
    def is_any_host(self) -> bool:
        return self.host == ANYHOST or self.get_bool("anyhost", False)

    def backup_address(self, default_port: int) -> str:
        """The address and its `backup` ones, as a ZooKeeper client wants them."""
        addresses = [self.address, *self.get_list("backup")]
        return ",".join(a if re.search(r":\d+$", a) else f"{a}:{default_port}" for a in addresses)

    # -- changing ----------------------------------------------------------------------------------------

    def replace(
        self,
        *,
        protocol: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> URL:
        return URL(
            self.protocol if protocol is None else protocol,
            self.host if host is None else host,
            self.port if port is None else port,
            self.path if path is None else path,
            self.parameters if parameters is None else parameters,
            username=self.username,
            password=self.password,
        )

    def add(self, parameters: Mapping[str, object]) -> URL:
        """Add or overwrite; None and empty values are ignored."""
        return self._merge(parameters, overwrite=True)

    def add_if_absent(self, parameters: Mapping[str, object]) -> URL:
        return self._merge(parameters, overwrite=False)

    def add_encoded(self, key: str, value: str) -> URL:
        return self.add({key: encode(value)}) if value else self

    def remove(self, *keys: str) -> URL:
        return self.keep(k for k in self.parameters if k not in keys)

    def keep(self, keys: Iterable[str]) -> URL:
        return self.replace(parameters={k: self.parameters[k] for k in keys if self.parameters.get(k)})

    def _merge(self, parameters: Mapping[str, object], *, overwrite: bool) -> URL:
        merged = dict(self.parameters)
        for key, value in parameters.items():
            text = to_text(value)
            if key and text and (overwrite or not merged.get(key)):
                merged[key] = text
        return self if merged == self.parameters else self.replace(parameters=merged)

    # -- printing and comparing --------------------------------------------------------------------------

    @cached_property
    def full(self) -> str:
        return self._print(user=True, parameters=True)

    @cached_property
    def identity(self) -> str:
        return self._print(user=True, parameters=False)

    def _print(self, *, user: bool, parameters: bool) -> str:
        text = f"{self.protocol}://" if self.protocol else ""
        if user and self.username:
            text += self.username + (f":{self.password}" if self.password else "") + "@"
        text += self.address + (f"/{self.path}" if self.path else "")
        if parameters and self.parameters:
            text += "?" + to_query(self.parameters)
        return text

    def __str__(self) -> str:
        return self._print(user=False, parameters=True)

    def __repr__(self) -> str:
        return f"URL({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URL) and self.full == other.full

    def __hash__(self) -> int:
        return hash(self.full)


def to_text(value: object) -> str:
    """A parameter's value as text: booleans as Java writes them, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()


def to_query(parameters: Mapping[str, str]) -> str:
    return "&".join(f"{key}={parameters[key]}" for key in sorted(parameters) if key)


def parse_query(query: str) -> dict[str, str]:
    parameters = {}
    for part in query.split("&"):
        key, equals, value = part.strip().partition("=")
        if key:
            parameters[key] = value if equals else key
    return parameters


def split_address(address: str, text: str) -> tuple[str, int]:
    """Host and port (0 when absent); an IPv6 host may be in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port or "%" in port:
        return address.strip("[]"), 0
    if not port:
        return host.strip("[]"), 0
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"the port {port!r} in {text!r} is not a number from 0 to 65535")
    return host.strip("[]"), int(port)
