"""Lines to records, as Kafka's console producer reads them: headers, key and value between separators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.cli.failure import Failure, Misuse
from headrace.cli.view.records.record import Headers, Record


@dataclass(frozen=True, slots=True)
class LineFormat:
    parse_key: bool = False
    key_separator: bytes = b"\t"
    parse_headers: bool = False
    headers_delimiter: bytes = b"\t"  # between the headers and what follows
    headers_separator: bytes = b","  # between headers; a regular expression
    headers_key_separator: bytes = b":"  # between a header's name and its value
    null_marker: bytes | None = None  # a key, value or header value that is null
    ignore_error: bool = False

    @staticmethod
    def from_properties(properties: Mapping[str, str]) -> LineFormat:
        """From the names Kafka gives these (parse.key, key.separator, …)."""
        known = {f.replace("_", "."): f for f in LineFormat.__slots__}
        given: dict[str, bool | bytes] = {}
        for name, value in properties.items():
            if name in known:
                is_switch = name in ("parse.key", "parse.headers", "ignore.error")
                given[known[name]] = value.strip().lower() == "true" if is_switch else value.encode()
        made = LineFormat(**given)  # type: ignore[arg-type]
        made._check()
        return made

    def _check(self) -> None:
        separators = {
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        names = list(separators)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        for a, b in pairs:
            if separators[a] == separators[b]:
                raise Misuse(f"{a} and {b} may not be equal.")
        for name, text in {"key.separator": self.key_separator, **separators}.items():
            if text == self.null_marker:
                raise Misuse(f"null.marker and {name} may not be equal.")
            if not text:
                raise Misuse(f"{name} may not be empty.")

    def parse(self, line: bytes, number: int) -> Record:
        """Raises Failure for a line that lacks a separator, unless errors are to be ignored."""
        rest = line
        headers: bytes | None = None
        key: bytes | None = None
        if self.parse_headers:
            headers, rest = self._cut(rest, self.headers_delimiter, "headers delimiter", line, number)
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", line, number)
        return Record(
            value=self._nullable(rest),
            key=self._nullable(key),
            headers=self._headers(headers, number)
            if headers is not None and headers != self.null_marker
            else [],
        )

    def _cut(
        self, text: bytes, separator: bytes, name: str, line: bytes, number: int
    ) -> tuple[bytes | None, bytes]:
        before, found, after = text.partition(separator)
        if found:
            return before, after
        if self.ignore_error:
            return None, text
        raise Failure(f"No {name} found on line number {number}: '{line.decode(errors='replace')}'.")

    def _headers(self, text: bytes, number: int) -> Headers:
        headers: Headers = []
        for pair in re.split(self.headers_separator, text):
            name, found, value = pair.partition(self.headers_key_separator)
            if not found and not self.ignore_error:
                shown = pair.decode(errors="replace")
                raise Failure(f"No header key separator found in pair '{shown}' on line number {number}.")
            if name == self.null_marker:
                raise Failure(
                    f"A header on line number {number} has the null marker as its name; names are never null."
                )
            headers.append((name.decode(errors="replace"), self._nullable(value) if found else None))
        return headers

    def _nullable(self, text: bytes | None) -> bytes | None:
        return None if text is None or text == self.null_marker else text
