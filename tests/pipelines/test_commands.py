"""`headrace pipeline` as a user types it, where Spark is not needed, or does not start."""

import json
import socket
from dataclasses import dataclass

import pytest

from headrace.cli import dispatch, frame


@dataclass
class Ran:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def headrace(tmp_path, monkeypatch, capsys):
    """The command inside its frame, in this process: what it prints and its exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = frame.run(lambda: dispatch(["pipeline", *map(str, arguments)]))
        return Ran(code, *capsys.readouterr())

    return run


def test_new_writes_a_project_that_list_and_status_know(headrace, tmp_path):
    made = headrace("new", "shop")
    assert made.returncode == 0
    assert made.stdout.split() == [
        "shop/spark-pipeline.yml",
        "shop/transformations/orders.py",
        "shop/README.md",
        "shop/.gitignore",
    ]
    assert "headrace pipeline run" in made.stderr
    headrace("new", "sqlshop", "--sql")
    assert (tmp_path / "sqlshop/transformations/flows.sql").exists()

    looks = json.loads(headrace("list", "--json").stdout)
    assert [(look["project"], look["state"]) for look in looks] == [
        ("shop", "never run"),
        ("sqlshop", "never run"),
    ]
    assert headrace("status", "shop/transformations").stdout.endswith("shop: never run\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["new", "a/b c"], "A project is named with letters, digits, - and _, not 'b c'."),
        (["run", "nowhere"], "There is no directory"),
        (["run"], "There is no spark-pipeline.yml in"),
        (["status", "."], "There is no spark-pipeline.yml in"),
        (["list", "nowhere"], "There is no directory 'nowhere'."),
        (["replay", "shop"], "name it with --version"),
        (["replay", "shop", "--version", "v2", "--from", "noon"], "'noon' is no time"),
        (
            ["replay", "shop", "--version", "v2", "--from", "a:0:1", "--from", "b"],
            "TOPIC:PARTITION:OFFSET, not 'b'",
        ),
        (
            ["replay", "shop", "--version", "v/2"],
            "A version is named with letters, digits, - and _, not 'v/2'.",
        ),
        (["run", "shop", "--interval", "soon"], "'soon' is no duration"),
        (["run", "shop", "--conf", "x"], "--conf takes key=value, not 'x'."),
        (["stop", "shop"], "This pipeline is not running."),
    ],
)
def test_bad_input_gets_one_sentence(headrace, arguments, sentence):
    if "shop" in arguments:
        headrace("new", "shop")
    ran = headrace(*arguments)
    assert ran.returncode in (1, 2)
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "spec", ["name: [", "name: x", "storage: 3", "name: x\nstorage: y\nlibraries: [1]\n", "- 1", ""]
)
def test_a_spec_that_is_none_gets_one_sentence(headrace, tmp_path, spec):
    (tmp_path / "spark-pipeline.yml").write_text(spec)
    ran = headrace("check")
    assert ran.returncode == 1
    assert ran.stderr.startswith("headrace: spark-pipeline.yml is not")
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_broker_that_is_not_there_is_named_before_spark_starts(headrace, tmp_path, command):
    headrace("new", "shop")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    ran = headrace(command, "shop", "-b", address)
    assert ran.returncode != 0
    assert f"No broker answers at {address}" in ran.stderr
    assert not (tmp_path / "shop/.headrace/spark.log").exists()


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        ("here", "'here' is no Spark master; --master takes local[N], spark://HOST:PORT, yarn or k8s://"),
        ("local[many]", "'local[many]' is no Spark master"),
        ("spark://", "'spark://' is no Spark master"),
        (
            "spark://{nobody}",
            "No Spark master answers ({nobody}: connection refused); start one, or name another",
        ),
    ],
)
def test_a_master_that_spark_cannot_use_is_named_with_the_cause(headrace, bootstrap, master, sentence):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    headrace("new", "shop")
    ran = headrace("run", "shop", "-b", bootstrap, "--master", master.format(nobody=nobody))
    assert ran.returncode == 1
    assert sentence.format(nobody=nobody) in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (
            ["--master", "yarn"],
            {},
            "Spark did not start (When running with master 'yarn' either HADOOP_CONF_DIR or",
        ),
        (
            [],
            {"JAVA_HOME": "/none"},
            "/none/bin/java: No such file or directory): it needs Java 17 or newer, in the PATH",
        ),
    ],
)
def test_a_spark_that_does_not_start_is_told_with_the_cause(
    headrace, commands, tmp_path, arguments, environment, sentence
):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        commands.environment.pop(name, None)
    headrace("new", "shop")
    ran = commands.start(tmp_path / "shop", "run", *arguments, **environment)
    _, said = ran.communicate(timeout=120)
    assert ran.returncode == 1
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
