"""The error a group's coordinator answers with."""

from __future__ import annotations

import pytest

from headrace.wire.errors import ErrorCode, KafkaError


async def refused(heartbeat) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as caught:
        await heartbeat
    return caught.value.code, caught.value.message
