"""An outbox in a folder: ``send`` returns when the record is on the disk, a relay brings it to Kafka.

Owns the folder: numbered journal files and ``sent``, the position up to which all is acknowledged. Losing
the last ``sent`` only repeats records, with the same ids; a file whose entries have all been sent is
deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NamedTuple, Self

from headrace.client.outbox.entry import Entry, OutboxError, decode, encode, make_entry
from headrace.client.outbox.journal import frame, read, true_end
from headrace.client.record import HeadersLike
from headrace.client.serializers import Serializer, as_serializer
from headrace.replacing import replace_file

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes | str)
    V = TypeVar("V", default=bytes | str)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class Position(NamedTuple):
    file: int
    byte: int


class FileOutbox(Generic[K, V]):
    """Records that must not be forgotten, whatever happens to this process.

    >>> with FileOutbox("outbox") as outbox, Relay(outbox, "localhost:9092"):
    ...     outbox.send("orders", "one")

    One process uses a folder at a time. Threads that send at the same time share one fsync.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        key_serializer: Serializer[K] | Callable[[K], bytes] | None = None,
        value_serializer: Serializer[V] | Callable[[V], bytes] | None = None,
        segment_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._folder = Path(folder)
        self._serialize_key = as_serializer(key_serializer, "key")
        self._serialize_value = as_serializer(value_serializer, "value")
        self._segment_bytes = segment_bytes
        self._writing = threading.Lock()
        self._syncing = threading.Lock()
        self._something_new = threading.Event()
        self._broken: OSError | None = None
        self._file = -1
        self._written = self._synced = Position(0, 0)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._take_lock()
        try:
            self._recover()
        except BaseException:
            os.close(self._lock)
            raise

    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
    ) -> str:
        """Return the record's id when it is safe on disk; the relay sends it from there."""
        entry = make_entry(
            topic, self._serialize_key(key), self._serialize_value(value), headers, partition, timestamp
        )
        data = frame(encode(entry))
        with self._writing:
            self._check()
            if self._written.byte >= self._segment_bytes:
                self._roll()
            self._write(data)
            mine = self._written
        self._sync(mine)
        self._something_new.set()
        return entry.id

    def __len__(self) -> int:
        """How many records are safe and not yet acknowledged; reads the files."""
        return sum(1 for _ in self._unsent(self._synced))

    # For the relay

    def pending(self, limit: int) -> list[tuple[Position, Entry]]:
        found: list[tuple[Position, Entry]] = []
        for position, payload in self._unsent(self._synced):
            found.append((position, decode(payload)))
            if len(found) == limit:
                break
        return found

    def sent(self, handles: list[Position]) -> None:
        if handles:
            self._sent = handles[-1]
            self._keep_sent()
            for number in self._numbers():
                if number < self._sent.file:
                    self._path(number).unlink()

    def wait(self, timeout: float) -> None:
        self._something_new.wait(timeout)
        self._something_new.clear()

    def hold(self) -> bool:
        return True

    def close(self) -> None:
        with self._writing, self._syncing:
            if self._file < 0:
                return
            try:
                if self._broken is None and self._synced < self._written:  # a caller waits for it
                    self._flush()
                    self._synced = self._written
            finally:
                os.close(self._file)
                os.close(self._lock)
                self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recover(self) -> None:
        self._sent = self._read_sent()
        numbers = self._numbers() or [max(1, self._sent.file)]
        self._sent = max(self._sent, Position(numbers[0], 0))
        self._file = os.open(self._path(numbers[-1]), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        start = self._sent.byte if self._sent.file == numbers[-1] else 0
        end = true_end(self._path(numbers[-1]), self._file, start)
        os.ftruncate(self._file, end)
        os.fsync(self._file)
        self._sync_folder()
        self._written = self._synced = Position(numbers[-1], end)

    def _unsent(self, until: Position) -> Iterator[tuple[Position, bytes]]:
        at = self._sent
        for number in self._numbers():
            if not at.file <= number <= until.file:
                continue
            file = os.open(self._path(number), os.O_RDONLY)
            try:
                start = at.byte if number == at.file else 0
                end = until.byte if number == until.file else os.fstat(file).st_size
                reached = start
                for reached, payload in read(file, start, end):
                    yield Position(number, reached), payload
                if reached < end:
                    raise OutboxError(f"{self._path(number)} is damaged at byte {reached}: restore the file")
            finally:
                os.close(file)

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes were taken")
        except OSError as error:
            self._broken = error
            raise self._failure(error) from error
        self._written = Position(self._written.file, self._written.byte + len(data))

    def _sync(self, wanted: Position) -> None:
        with self._syncing:
            if self._synced >= wanted:
                return
            target = self._written
            self._flush()
            self._synced = target

    def _flush(self) -> None:
        if self._broken is None:
            try:
                os.fsync(self._file)
                return
            except OSError as error:
                self._broken = error
        # What the disk holds after a failed fsync is unknown, and a second one, of another thread, would not report it.
        raise self._failure(self._broken) from self._broken

    def _roll(self) -> None:
        with self._syncing:
            self._flush()
            number = self._written.file + 1
            try:
                file = os.open(self._path(number), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                self._sync_folder()
            except OSError as error:
                self._broken = error
                raise self._failure(error) from error
            os.close(self._file)
            self._file = file
            self._written = self._synced = Position(number, 0)

    def _check(self) -> None:
        if self._file < 0:
            raise OutboxError(f"the outbox in {self._folder} is closed")
        if self._broken is not None:
            raise self._failure(self._broken)

    def _failure(self, error: OSError) -> OutboxError:
        return OutboxError(
            f"the outbox in {self._folder} cannot be written ({error}): free or repair the disk, then open it again"
        )

    def _take_lock(self) -> int:
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise OutboxError(
                f"the outbox in {self._folder} is in use by another process: give each its own folder"
            ) from None
        return lock

    def _read_sent(self) -> Position:
        try:
            return Position(*json.loads((self._folder / "sent").read_text()))
        except FileNotFoundError:
            return Position(0, 0)
        except (ValueError, TypeError):
            # An unreadable note only means that records are sent again, with their ids.
            return Position(0, 0)

    def _keep_sent(self) -> None:
        replace_file(self._folder / "sent", json.dumps(self._sent), durable=False)

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("*.journal"))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:020d}.journal"

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
