"""What may be a key of a map or a member of a set that came from the wire."""

from __future__ import annotations

from typing import Any

from headrace.services.hessian2.errors import Hessian2Error

_SAME_HASH_LIMIT = 64


def check_hash(key: Any, hashes: dict[int, int]) -> None:
    """Refuse keys chosen to share one hash, which would make a small body take for ever.

    Python's strings and bytes hash with a secret, and 64-bit integers cannot be made to meet; all others can.
    """
    if type(key) in (str, bytes) or (type(key) is int and -0x8000000000000000 <= key < 0x8000000000000000):
        return
    try:
        value = hash(key)
    except TypeError:
        raise
    except Exception as error:
        raise Hessian2Error(
            f"A {type(key).__name__} cannot be a key before it is complete: {error}."
        ) from None
    hashes[value] = seen = hashes.get(value, 0) + 1
    if seen > _SAME_HASH_LIMIT:
        raise Hessian2Error(f"More than {_SAME_HASH_LIMIT} keys of one map share a hash value.")
