"""`headrace up` of any version as a process: one broker, or several under its supervisor."""

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType


class Up:
    """Ready when it has been made; `stop()` asks it to end and waits."""

    def __init__(
        self,
        headrace: list[str],
        data: Path,
        settings: Mapping[str, str],
        *options: str,
        listen: str = "127.0.0.1:0",
    ) -> None:
        command = [*headrace, "up", "--listen", listen, "--data", str(data), *options]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        errors = data.with_name(f"{data.name}.stderr")
        with errors.open("a") as file:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, text=True, process_group=0
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "is ready: broker" not in line:
            self.kill()
            raise AssertionError(f"{' '.join(command)} did not start: {line}{errors.read_text()[-4000:]}")
        self.bootstrap = ",".join(re.findall(r"127\.0\.0\.1:\d+", line))

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        self._close()
        assert code == 0, f"headrace up ended with {code}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> "Up":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()
