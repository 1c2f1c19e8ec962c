"""What deploy/ says is what runs: the commands of the systemd units and of the compose file, on other paths and ports."""

import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from headrace.testing.zookeeper import ZooKeeperServer

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
HEADRACE = [sys.executable, "-m", "headrace.cli"]


@contextmanager
def ready(arguments, tmp_path):
    """The line a broker prints when it serves; it is stopped in good order afterwards."""
    with (
        (tmp_path / "stderr").open("w") as errors,
        subprocess.Popen(
            [*HEADRACE, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=tmp_path
        ) as broker,
    ):
        try:
            yield broker.stdout.readline() or (tmp_path / "stderr").read_text()
        finally:
            broker.send_signal(signal.SIGTERM)
            assert broker.wait(60) == 0


def unit_command(name, tmp_path, **variables):
    """The arguments of the unit's ExecStart, with settings and data in the test's directory."""
    text = (DEPLOY / "systemd" / name).read_text()
    (line,) = re.findall(r"^ExecStart=/opt/headrace/bin/headrace (.*)$", text, re.MULTILINE)
    for old, new in {"%i": "1", "/etc/headrace": tmp_path, "/var/lib/headrace": tmp_path / "data"}.items():
        line = line.replace(old, str(new))
    for variable, value in variables.items():
        assert f"Environment={variable}=" in text
        line = line.replace(f"${{{variable}}}", value)
    return shlex.split(line)


def properties(**changed):
    text = (DEPLOY / "systemd" / "server.properties").read_text()
    for name, value in changed.items():
        text, count = re.subn(
            rf"^{name.replace('_', '.')}=.*$", f"{name.replace('_', '.')}={value}", text, flags=re.M
        )
        assert count == 1, name
    return text


@pytest.fixture
def ensemble(tmp_path):
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        yield f"{zookeeper.connect_string}/headrace"


def test_the_unit_of_a_broker_starts_one(tmp_path, ensemble):
    own = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised_listeners": "PLAINTEXT://127.0.0.1:0"}
    (tmp_path / "broker-1.properties").write_text(properties(zookeeper_connect=ensemble, **own))
    with ready(unit_command("headrace@.service", tmp_path), tmp_path) as line:
        assert "is ready: broker 1 on 127.0.0.1:" in line
        assert str(tmp_path / "data" / "broker-1") in line


def test_the_unit_of_a_machine_starts_all_its_brokers(tmp_path):
    (tmp_path / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    with ready(unit_command("headrace.service", tmp_path, BROKERS="2"), tmp_path) as line:
        assert "is ready: brokers 1 to 2 on 127.0.0.1:" in line


def test_the_brokers_of_the_compose_file_start(tmp_path, ensemble):
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert [name for name in services if name.startswith("broker")] == ["broker1", "broker2", "broker3"]
    for number in (1, 2, 3):
        arguments = services[f"broker{number}"]["command"]
        assert f"--id={number}" in arguments
        ports = [port.rsplit(":", 1)[1] for port in services[f"broker{number}"]["ports"]]
        listeners = next(each for each in arguments if each.startswith("--set=listeners="))
        assert all(f"HOST://0.0.0.0:{port}" in listeners for port in ports)
    moved = [
        re.sub(r"^--zookeeper=.*", f"--zookeeper={ensemble}", argument)
        .replace("--data=/data", f"--data={tmp_path / 'data'}")
        .replace("0.0.0.0:9092", "127.0.0.1:0")
        .replace("0.0.0.0:19092", "127.0.0.1:0")
        for argument in services["broker1"]["command"]
    ]
    with ready(moved, tmp_path) as line:
        assert "is ready: broker 1 on 127.0.0.1:" in line


def test_the_image_runs_a_command_that_exists(tmp_path):
    recipe = (DEPLOY / "Containerfile").read_text()
    (line,) = re.findall(r"^CMD \[(.*)\]$", recipe, re.MULTILINE)
    arguments = [part.strip().strip('"') for part in line.split(",")]
    moved = [
        part.replace("0.0.0.0:9092", "127.0.0.1:0").replace("/data", str(tmp_path / "data"))
        for part in arguments
    ]
    with ready(moved, tmp_path) as line:
        assert "is ready: broker" in line
