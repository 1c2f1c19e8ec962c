"""What to send: random letters, lines of a file, or numbers that grow."""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Iterator
from pathlib import Path

from headrace.client.errors import ClientError

_DIFFERENT = 1_000  # enough that compression does not see the same record again and again


def letters(size: int) -> Iterator[bytes]:
    """Random capital letters, as Kafka's tool sends; the same ones in every run."""
    source = random.Random(0)
    made = ["".join(source.choices(string.ascii_uppercase, k=size)).encode() for _ in range(_DIFFERENT)]
    return itertools.cycle(made)


def from_file(path: Path, delimiter: str) -> tuple[Iterator[bytes], int]:
    """Pieces of a file in random order, and how many there are."""
    try:
        pieces = [piece.encode() for piece in path.read_text().split(delimiter)]
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"Cannot read the payloads in {path}: {error}.") from None
    if pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise ClientError(f"There are no payloads in {path}.")
    source = random.Random(0)
    return (source.choice(pieces) for _ in itertools.count()), len(pieces)


def growing() -> Iterator[bytes]:
    return (str(number).encode() for number in itertools.count())
