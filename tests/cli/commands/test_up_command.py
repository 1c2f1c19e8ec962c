"""`headrace up` as a new user meets it: mistakes are named with the cause and the remedy, and it says what it does."""

import ast
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from typer.main import get_command

from headrace.cli import frame
from headrace.cli.commands import up
from headrace.cli.commands.start import read_plain
from headrace.cli.commands.start import start as start_command
from headrace.cli.failure import Exit


def starting(headrace, *arguments):
    """A start that must fail: its one sentence."""
    ran = headrace("up", *arguments)
    assert ran.code != 0
    assert ran.out == ""
    return ran.err


def until(process, text):
    """Lines of stderr up to the one that holds `text`, which is the last."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return lines
    pytest.fail(f"it never said {text!r}: {lines}")


def test_ctrl_c_is_answered_with_a_line_when_everything_is_on_disk(start):
    process = start("up", "--temp", "--listen", "127.0.0.1:0")
    assert "is ready: broker 1 on 127.0.0.1:" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert "broker 1 has stopped; everything written is on disk" in until(process, "has stopped")[-1]
    assert process.wait(30) == 0


def test_an_unknown_setting_in_the_file_is_a_warning_with_its_line_and_the_nearest_name(start, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\n\nlog.retention.hour=3\n")
    process = start("up", "--temp", "--listen", "127.0.0.1:0", "--config", file)
    line = until(process, "log.retention.hour")[-1]
    assert f"WARNING {file}:3: Unknown setting log.retention.hour. Did you mean log.retention.hours?" in line


def test_a_binary_settings_file_is_refused(headrace, tmp_path):
    file = tmp_path / "picture.png"
    file.write_bytes(bytes(range(256)))
    said = starting(headrace, "--temp", "--config", file)
    assert said == f"headrace: {file} is not a settings file: it holds binary data, not lines of key=value.\n"


def test_every_mistake_in_the_file_is_named_at_once(headrace, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("lisners=PLAINTEXT://:9092\nnum.partitions=many\nlog.retention.hours=x\n")
    said = starting(headrace, "--temp", "--config", file, "--set", "nm.partitions=3")
    assert said.splitlines() == [
        f"headrace: {file}:2: Invalid value many for configuration num.partitions: Not a number of type INT",
        f"{file}:3: Invalid value x for configuration log.retention.hours: Not a number of type INT",
        "Unknown setting nm.partitions. Did you mean num.partitions?",
        f"{file}:1: Unknown setting lisners. Did you mean listeners?",
    ]


def test_a_wrong_value_in_the_file_is_named_with_its_line(headrace, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# ours\nnum.partitions=many\n")
    assert f"{file}:2: Invalid value many for configuration num.partitions" in starting(
        headrace, "--temp", "--config", file
    )


def test_an_address_of_another_machine_cannot_be_listened_on(headrace):
    # 192.0.2.0/24 is for documentation: no machine has it.
    said = starting(headrace, "--temp", "--listen", "192.0.2.1:9092")
    assert "192.0.2.1 is not an address of this machine" in said
    assert "--advertise" in said


def test_a_port_that_is_taken_is_named(headrace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = starting(headrace, "--temp", "--listen", f"127.0.0.1:{port}")
    assert f"something else listens on port {port}" in said


def test_a_host_name_nobody_knows_cannot_be_listened_on(headrace):
    said = starting(headrace, "--temp", "--listen", "nowhere.invalid:9092")
    assert "the host name nowhere.invalid cannot be resolved" in said


def test_a_listener_on_every_address_says_what_clients_are_told(start):
    process = start("up", "--temp", "--listen", "0.0.0.0:0")
    line = until(process, "open on every address")[-1]
    assert "WARNING" in line
    assert "--advertise HOST:PORT" in line


def test_nothing_is_said_about_every_address_when_clients_are_told_another(start):
    process = start("up", "--temp", "--listen", "0.0.0.0:0", "--advertise", "127.0.0.1:9092")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert not any("every address" in line for line in until(process, "has stopped"))


def test_a_file_as_data_directory_is_named_for_what_it_is(headrace, tmp_path):
    file = tmp_path / "data"
    file.touch()
    said = starting(headrace, "--data", file, "--listen", "127.0.0.1:0")
    assert f"No data directory can be used ({file}: it is a file" in said
    assert "Errno" not in said


@pytest.mark.parametrize(
    "server", ["localhost", "localhost:abc", ":9092", "localhost:0", "localhost:99999", "::1:9092", ""]
)
def test_a_bootstrap_server_that_is_none_is_named(headrace, server):
    ran = headrace("topics", "list", "-b", f"127.0.0.1:9092,{server}")
    assert ran.code == 2
    assert (
        ran.err == f"headrace: --bootstrap-server takes HOST:PORT, such as 127.0.0.1:9092, not '{server}'.\n"
    )


PLAIN = [
    [],
    ["--temp", "--listen", "127.0.0.1:0"],
    ["--listen=127.0.0.1:0", "--advertise", "broker-1.example.com:9092", "--data=here", "--config", "file"],
    ["--set", "a=b", "--set=c=d=e", "--set", "f="],
    ["--brokers", "3", "--listen", "h:1", "--listen", "h:2"],
    ["--zookeeper", "zk1:2181,zk2:2181/headrace", "--id", "0", "--rack", "a"],
    ["--data", ""],
]
LEFT_TO_TYPER = [
    ["--help"],
    ["-h"],
    ["--lisen", "127.0.0.1:0"],
    ["--listen"],
    ["--listen", "--temp"],
    ["--temp=yes"],
    ["--brokers", "0"],
    ["--brokers", "three"],
    ["--id", "-1"],
    ["--", "--temp"],
    ["topic"],
]


def declared():
    """The command as typer knows it."""
    return get_command(up.app)


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_a_plain_command_line_means_without_typer_what_it_means_with_it(arguments, monkeypatch):
    started = []
    monkeypatch.setattr(up, "start", lambda options: started.append(options) or 0)
    declared().main(arguments, standalone_mode=False)
    (meant,) = started
    read = read_plain(arguments)
    assert read is not None
    assert {name: read.get(name) or None for name in meant} == {
        name: value or None for name, value in meant.items()
    }


@pytest.mark.parametrize("arguments", LEFT_TO_TYPER, ids=" ".join)
def test_what_is_not_plain_is_left_to_typer(arguments):
    assert read_plain(arguments) is None


def test_every_option_of_the_command_is_read_without_typer():
    for option in declared().params:
        if option.name == "help":
            continue
        value = [] if option.name == "temp" else ["1"]
        assert read_plain([option.opts[0], *value]), option.name


def test_a_broker_starts_without_the_libraries_that_only_other_commands_need():
    code = (
        "import sys, headrace.server.run as run;"
        "run.run = lambda *_: print(sorted({name.partition('.')[0] for name in sys.modules})) or 0;"
        "import headrace.cli as cli; cli.dispatch(['up', '--temp'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(ran.stdout))
    assert "headrace" in loaded
    assert not loaded & {"typer", "rich", "confluent_kafka", "re2", "kazoo"}


def test_a_broker_does_not_start_with_permissions_that_nobody_could_have(headrace, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n")
    said = starting(headrace, "--temp", "--listen", "127.0.0.1:0", "--config", file)
    assert said.startswith("headrace: authorizer.class.name is set, but clients cannot log in")
    assert "super.users=User:ANONYMOUS" in said
    assert said.count("\n") == 1


def test_settings_without_effect_are_named_in_one_line_at_start(start):
    given = ("--set", "num.network.threads=9", "--set", "num.replica.fetchers=4")
    process = start("up", "--temp", "--listen", "127.0.0.1:0", *given)
    (line,) = until(process, "Settings without effect")
    assert "WARNING Settings without effect: num.network.threads (one event loop" in line
    assert "num.replica.fetchers (a follower pulls" in line


def test_an_address_keeps_the_protocol_of_the_listener_in_the_file(headrace, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("listeners=SSL://127.0.0.1:9093\nsecurity.inter.broker.protocol=SSL\n")
    said = starting(headrace, "--temp", "--listen", "127.0.0.1:0", "--config", file)
    assert "ssl.keystore.location" in said


def test_an_address_cannot_stand_for_two_listeners(headrace, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093\n")
    said = starting(headrace, "--temp", "--listen", "127.0.0.1:0", "--config", file)
    assert "has the listeners PLAINTEXT, SSL" in said
    assert "use --set listeners=… instead" in said


def test_metrics_alone_stand_for_the_default_address_wherever_they_stand():
    default = {"metrics": "127.0.0.1:9464"}
    assert read_plain(["--metrics"]) == default
    assert read_plain(["--metrics", "--temp"]) == {**default, "temp": True}
    assert read_plain(["--metrics", "10.0.0.5:9500"]) == {"metrics": "10.0.0.5:9500"}
    assert read_plain(["--metrics=10.0.0.5:9500"]) == {"metrics": "10.0.0.5:9500"}


def test_the_line_that_says_it_is_ready_names_where_metrics_are(start):
    process = start("up", "--temp", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    line = process.stdout.readline()
    found = re.search(r"; metrics at (http://127\.0\.0\.1:\d+)/metrics", line)
    assert found, line
    with urllib.request.urlopen(f"{found[1]}/readyz", timeout=60) as answer:
        assert answer.read() == b"ok\n"


def test_a_metrics_listener_that_others_can_reach_is_named(start):
    process = start("up", "--temp", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0")
    assert "/metrics, open to everyone who can reach this machine" in process.stdout.readline()


@pytest.mark.parametrize("value", ["nonsense", "here:", "http://127.0.0.1:9464"])
def test_a_wrong_address_for_metrics_is_named(headrace, value):
    said = starting(headrace, "--temp", "--metrics", value)
    assert said == f"headrace: --metrics takes HOST:PORT, such as 127.0.0.1:9464, not '{value}'.\n"


def test_a_metrics_port_that_is_taken_is_named(headrace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = starting(headrace, "--temp", "--listen", "127.0.0.1:0", "--metrics", str(port))
    assert f"Cannot serve metrics on 127.0.0.1:{port}: something else listens on port {port}" in said
    assert "--metrics HOST:PORT" in said


def test_metrics_need_a_port_of_their_own(headrace):
    said = starting(headrace, "--temp", "--listen", "127.0.0.1:9599", "--metrics", "9599")
    assert "headrace.metrics.listener needs a port of its own" in said


def test_a_registry_whose_extra_is_missing_is_refused_before_a_broker_starts(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert frame.run(lambda: start_command({"registry": "127.0.0.1:0", "temp": True})) == Exit.FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert "This command needs uvicorn" in err
    assert "pip install 'headrace[registry]'" in err
