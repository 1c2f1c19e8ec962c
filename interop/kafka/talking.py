"""A program at work whose lines are read as they come: what it said so far, and waiting for what it is to say."""

import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType


class Talking:
    """Lines of words with tabs between are what it reports; all lines are kept for the message of a failure.

    A program is told to end by the end of its standard input, and killed if it has not been told.
    """

    def __init__(self, command: list[str]) -> None:
        self.lines: list[str] = []
        self._heard = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.lines.append(line.rstrip("\n"))
                self._heard.notify_all()

    def reports(self, kind: str) -> list[list[str]]:
        """What it reported of this kind, each as its words."""
        with self._heard:
            return [words for line in self.lines if (words := line.split("\t"))[0] == kind]

    def wait_for(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        """Until the condition holds; an assertion when the program ends first or the time is up."""
        deadline = time.monotonic() + seconds
        while not condition():
            ended = self._process.poll() is not None
            if ended:
                self._reader.join()
            assert not ended or condition(), f"it ended before {what}:\n{self.tail()}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s:\n{self.tail()}"
            with self._heard:
                self._heard.wait(0.2)

    def finish(self, seconds: float) -> None:
        """Tells it to end, and waits until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(seconds)
        self._reader.join()
        assert code == 0, f"it ended with {code}:\n{self.tail()}"

    def tail(self) -> str:
        return "\n".join(self.lines[-60:])

    def __enter__(self) -> "Talking":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
