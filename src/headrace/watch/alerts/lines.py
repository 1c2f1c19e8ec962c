"""The line of a TOML file that a table or key is on, for messages; tomllib does not say."""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\s*\[\[?\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+|\"[^\"]+\"|'[^']+')\s*(?:\.[^=]+)?=")


class Lines:
    """Tables are named by their header and counted from 0: the third ``[[rule]]`` is ("rule", 2)."""

    def __init__(self, text: str) -> None:
        self._tables: dict[tuple[str, int], int] = {}
        self._keys: dict[tuple[str, int, str], int] = {}
        counts: dict[str, int] = {}
        table, number = "", 0
        for line, content in enumerate(text.splitlines(), 1):
            if header := _TABLE.match(content):
                name = header[1].replace('"', "").replace("'", "")
                if "." in name:
                    # [rule.labels] and the like belong to the table above; the key is what is looked for.
                    self._keys.setdefault((table, number, name.rpartition(".")[2]), line)
                    continue
                table, number = name, counts.get(name, 0)
                counts[name] = number + 1
                self._tables[table, number] = line
            elif key := _KEY.match(content):
                self._keys.setdefault((table, number, key[1].strip("\"'")), line)

    def of(self, table: str, number: int = 0, key: str | None = None) -> int:
        """The line of a key, else of its table, else the first."""
        found = None if key is None else self._keys.get((table, number, key))
        return found or self._tables.get((table, number)) or (self._keys.get(("", 0, table)) or 1)
