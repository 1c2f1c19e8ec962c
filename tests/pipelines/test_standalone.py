"""A pipeline on a real Spark cluster of a master and two workers on this machine."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark
import pytest


@pytest.fixture
def standalone(tmp_path, commands):
    """A Spark cluster on this machine: a master and two workers, each a process of its own."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    started = []

    def start(name, *arguments):
        with (tmp_path / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [home / "bin/spark-class", f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
                env=environment,
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        return process

    def said(name, text, process):
        commands.wait(lambda: text in (tmp_path / f"{name}.log").read_text(), process, 120)
        return (tmp_path / f"{name}.log").read_text()

    master = start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    log = said("master", "Starting Spark master at spark://", master)
    url = "spark://" + log.partition("Starting Spark master at spark://")[2].split()[0]
    for number in (1, 2):
        name = f"worker-{number}"
        arguments = [
            "--cores",
            "1",
            "--memory",
            "1g",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            "--work-dir",
        ]
        worker = start(name, "worker.Worker", *arguments, str(tmp_path / name), url)
        said(name, "Successfully registered with master", worker)
    yield url
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pipeline_runs_on_a_cluster_of_two_workers(
    write_doubling, own_cluster, commands, standalone, tmp_path
):
    own_cluster.create("numbers", partitions=2)
    own_cluster.send("numbers", *({"n": n} for n in range(100)), b"poison")
    root = write_doubling("clustered")
    settings = {
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    ran = commands.start(
        root, "run", "--once", "--json", "--master", standalone, *conf, SPARK_LOCAL_IP="127.0.0.1"
    )
    out, err = ran.communicate(timeout=600)
    assert ran.returncode == 0, err
    assert {flow["state"] for flow in json.loads(out.splitlines()[-1])["flows"]} == {"done"}
    assert Counter(row["n"] for row in own_cluster.rows("doubled")) == Counter(range(100))
    totals = {last: sum(range(last, 100, 10)) for last in range(10)}
    assert {row["last"]: row["total"] for row in own_cluster.rows("sums")} == totals
    workers = {path.name for path in tmp_path.glob("worker-[12]") if any(path.glob("app-*/*"))}
    assert workers == {"worker-1", "worker-2"}
