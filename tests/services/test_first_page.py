"""The first code of docs/services.md, run as it is printed: a provider and a consumer that find each other without a server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "services.md"


def test_provider_and_consumer_of_the_page_find_each_other(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name, code in zip(("orders.py", "provider.py", "consumer.py"), blocks, strict=False):
        (tmp_path / name).write_text(code)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    # Any free port: another program may use the default one.
    environment["DUBBO_PROTOCOL_PORT"] = "-1"
    provider = subprocess.Popen(
        [sys.executable, "provider.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert provider.stdout is not None
        line = provider.stdout.readline()
        assert re.fullmatch(r"serving com\.acme\.OrderService:1\.0 on dubbo://[\d.]+:\d+\n", line), line
        answer = subprocess.run(
            [sys.executable, "consumer.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (answer.returncode, answer.stdout) == (0, "Order(order_id=1, article='tea')\n"), answer.stderr
        provider.send_signal(signal.SIGTERM)
        assert provider.wait(60) == 0
    finally:
        provider.kill()
        provider.communicate()
