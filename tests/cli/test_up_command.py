"""`headrace up` as a new user meets it: mistakes are named with the cause and the remedy, and it says what it does."""

import signal
import socket

import pytest


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
