"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random

_FIRST, _LONGEST = 1.0, 30.0


def delay(failures: int) -> float:
    """Growing, and never the same for two that failed together: on a busy machine they would only meet again."""
    return min(_FIRST * 2.0**failures, _LONGEST) * random.uniform(0.5, 1.5)
