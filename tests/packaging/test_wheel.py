"""What a user installs: the built wheel in an environment of its own, with nothing of the checkout in reach."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.wire import WireClient
from headrace.wire.messages.api_versions import ApiVersionsRequest

ROOT = Path(__file__).parent.parent.parent
UV = Path(sys.executable).parent / "uv"


def run(*command, **kwargs):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **kwargs)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.timeout(300)
def test_the_wheel_installs_small_and_serves(tmp_path):
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    run(UV, "build", "--wheel", "--out-dir", tmp_path, ROOT, env=environment)
    (wheel,) = tmp_path.glob("headrace-*.whl")
    run(UV, "venv", "--python", sys.executable, tmp_path / "venv", env=environment)
    python = tmp_path / "venv" / "bin" / "python"
    run(UV, "pip", "install", "--python", python, "-r", ROOT / "requirements/base.lock", env=environment)
    run(UV, "pip", "install", "--python", python, "--no-deps", wheel, env=environment)
    headrace = tmp_path / "venv" / "bin" / "headrace"
    assert "headrace" in run(headrace, "--version", cwd=tmp_path)
    command = [str(headrace), "up", "--temp", "--listen", "127.0.0.1:0"]
    broker = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    )
    try:
        ready = re.search(r"on (127\.0\.0\.1:\d+), data in (\S+)", broker.stdout.readline())
        with WireClient(ready[1]) as client:
            assert client.call(ApiVersionsRequest("wheel", "1"), 3).error_code == 0
    finally:
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(30) == 0
        broker.stdout.close()
    assert not Path(ready[2]).exists(), "--temp leaves nothing behind"
