"""The crowd: every buyer posts one request, some click twice, all at once over a few hundred connections."""

import asyncio
import json

CONNECTIONS = 200
CLICKS_TWICE = 20
"""Every so many-th buyer is impatient."""


def crowd(address: str, buyers: int, item: str) -> dict[int, int]:
    """Send everything; returns how often each HTTP status came back. 429 and 503 are tried again, as they ask."""
    return asyncio.run(_crowd(address, buyers, item))


async def _crowd(address: str, buyers: int, item: str) -> dict[int, int]:
    host, port = address.split(":")
    numbers = iter([n for buyer in range(buyers) for n in [buyer] * (2 if buyer % CLICKS_TWICE == 0 else 1)])
    statuses: dict[int, int] = {}

    async def browser() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for buyer in numbers:
            body = json.dumps({"buyer": buyer, "item": item}).encode()
            head = f"POST / HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: {item}/{buyer}\r\nContent-Length: {len(body)}\r\n"
            while True:
                writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
                status = await _answer(reader)
                statuses[status] = statuses.get(status, 0) + 1
                if status not in (429, 503):
                    break
                await asyncio.sleep(1)
        writer.close()

    await asyncio.gather(*(browser() for _ in range(CONNECTIONS)))
    return statuses


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = head.lower().split("\r\n")
    size = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
    await reader.readexactly(size)
    return int(lines[0].split()[1])
