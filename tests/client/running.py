"""A runner at work in a thread while a test looks on."""

import contextlib
import threading
from collections.abc import Iterator

from headrace.client import Runner


@contextlib.contextmanager
def running(runner: Runner) -> Iterator[None]:
    """Run it in a thread and pass on what it raises."""
    failure: list[BaseException] = []

    def run() -> None:
        try:
            runner.run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        runner.stop()
        thread.join()
    if failure:
        raise failure[0]
