"""What a command prints on stdout: aligned columns for people, JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from headrace.client.sizes import show_bytes

MISSING = "-"

size = show_bytes


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print("\n".join(columns(header, rows)))


def columns(
    header: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()
) -> list[str]:
    """Lines of aligned columns; numbers, and the columns named ``right``, to the right; None as a dash."""
    values = [list(row) for row in rows]
    cells = [[MISSING if value is None else str(value) for value in row] for row in values]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    numeric = [name in right or _is_numeric([row[i] for row in values]) for i, name in enumerate(header)]

    def line(values: Sequence[str]) -> str:
        padded = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    return [line(list(header)), *(line(row) for row in cells)]


def json_document(value: Any) -> None:
    import json

    json.dump(value, sys.stdout, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write("\n")


def json_line(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def count(number: int, what: str) -> str:
    """1 partition, 2 partitions."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def ids(brokers: Iterable[int]) -> str:
    """1,2,3; a dash for none."""
    return ",".join(map(str, brokers)) or MISSING


def note(sentence: str) -> None:
    """Something worth knowing that is not the answer: stderr, so that a pipe gets the answer alone."""
    print(sentence, file=sys.stderr)


def _is_numeric(column: Sequence[object]) -> bool:
    given = [value for value in column if value is not None]
    return bool(given) and all(isinstance(value, int | float) for value in given)
