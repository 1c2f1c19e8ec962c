"""The machine: a real broker process with a low limit, and kernels and interpreters as files and variables describe them."""

import os
import resource
import sys
import sysconfig
from dataclasses import replace

import pytest

from headrace.testing.process import BrokerProcess
from headrace.watch.doctor.machine_facts import Interpreter, Machine
from tests.watch.doctor.looking import findings, look, scene_of


@pytest.fixture
def process(tmp_path):
    running = BrokerProcess(tmp_path / "broker").start()
    yield running
    running.stop()


@pytest.fixture
def java(tmp_path):
    """A /proc in which Java listens where the broker does."""

    def make(port, *, open_files=1_000_000, mappings=10, sysctl=None):
        home = tmp_path / "proc"
        for name, value in (sysctl or {}).items():
            path = home / "sys" / name.replace(".", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        (home / "77/fd").mkdir(parents=True)
        (home / "net").mkdir()
        row = f"  0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4242 1 0"
        (home / "net/tcp").write_text(f"  sl  local_address\n{row}\n")
        os.symlink("socket:[4242]", home / "77/fd/5")
        os.symlink("/usr/lib/jvm/bin/java", home / "77/exe")
        (home / "77/limits").write_text(
            f"Limit  Soft Limit  Hard Limit  Units\nMax open files            {open_files}  9  files\n"
        )
        (home / "77/maps").write_text("mapping\n" * mappings)
        return Machine(proc=home)

    return make


def test_a_broker_that_may_open_too_few_files_is_found(process):
    from headrace.testing.topics import create_topic

    create_topic(process.bootstrap, "many", 60)
    assert findings("file-limit", process.bootstrap) == []
    pid = process.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (100, 100))
    [(severity, sentence, subjects)] = findings("file-limit", process.bootstrap)
    assert (severity, subjects) == ("warning", ("1",))
    assert "Broker 1 may open 100 files and keeps half of them for logs: with 60 replicas" in sentence
    limit = len(os.listdir(f"/proc/{pid}/fd")) + 5  # for our own connections
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
    [(severity, sentence, _)] = findings("file-limit", process.bootstrap)
    assert (severity, f"of the {limit} files open" in sentence) == ("error", True)


def test_kafkas_brokers_need_more_files_and_mappings(make_broker, java):
    broker = make_broker()
    broker.create_topic(partitions=50)
    few = java(broker.port, open_files=120, mappings=900, sysctl={"vm.max_map_count": 1_000})
    [(severity, sentence, _)] = findings("file-limit", broker.bootstrap, machine=few)
    assert severity == "error"
    assert "may open 120 files, and its 50 replicas need 3 each" in sentence
    [(severity, sentence, _)] = findings("kernel-limits", broker.bootstrap, machine=few)
    assert severity == "error"
    assert "vm.max_map_count is 1,000" in sentence


def test_strict_accounting_of_memory_without_room_is_a_warning(make_broker, tmp_path):
    broker = make_broker()
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "sys/vm/overcommit_memory").write_text("2\n")
    (tmp_path / "meminfo").write_text("CommitLimit:    1000000 kB\nCommitted_AS:   990000 kB\n")
    [(severity, sentence, _)] = findings("kernel-limits", broker.bootstrap, machine=Machine(proc=tmp_path))
    assert severity == "warning"
    assert sentence.startswith("vm.overcommit_memory is 2 and only 9 MiB are left to commit")
    (tmp_path / "meminfo").write_text("CommitLimit:    9000000 kB\nCommitted_AS:   990000 kB\n")
    assert findings("kernel-limits", broker.bootstrap, machine=Machine(proc=tmp_path)) == []


def test_an_interpreter_without_optimisations_is_a_warning_that_says_what_it_costs():
    variables = {"CONFIG_ARGS": "'--enable-shared' '--enable-optimizations' '--with-lto'"}
    assert findings("interpreter", machine=Machine(Interpreter.of(variables, True))) == []
    flags = {"PY_CORE_CFLAGS": "-O3 -fprofile-use -flto=auto"}
    assert findings("interpreter", machine=Machine(Interpreter.of(flags, True))) == []
    debian = {"CONFIG_ARGS": "'--enable-shared'", "Py_ENABLE_SHARED": 1}
    assert findings("interpreter", machine=Machine(Interpreter.of(debian, True, uses_library=False))) == []
    plain = Machine(Interpreter.of({"CONFIG_ARGS": "'--enable-shared' '--enable-optimizations'"}, True))
    [(severity, sentence, _)] = findings("interpreter", machine=plain)
    assert severity == "warning"
    assert "was built without LTO (--with-lto): " in sentence
    assert "0.76 to 0.91 of the CPU time" in sentence


def test_this_interpreter_is_described_as_it_was_built():
    this = Interpreter.this()
    asked = sysconfig.get_config_var("CONFIG_ARGS") or ""
    assert this.path == sys.executable
    assert this.has_uvloop
    if "--enable-optimizations" in asked:
        assert this.profiled


def test_a_missing_uvloop_is_an_error():
    assert findings("uvloop") == []
    [(severity, sentence, _)] = findings(
        "uvloop", machine=Machine(replace(Interpreter.this(), has_uvloop=False))
    )
    assert (severity, "no broker starts without it" in sentence) == ("error", True)


def test_brokers_elsewhere_are_named_since_their_machines_cannot_be_seen(make_broker):
    scene = scene_of(make_broker().bootstrap)
    assert look("other-machines", scene) == []
    (here,) = scene.contacts.brokers
    away = replace(here, host="192.0.2.77")
    assert not away.is_here
    scene = scene_of(f"{here.host}:{here.port}")
    scene.contacts = replace(scene.contacts, brokers=(away,))
    [(severity, _, subjects)] = look("other-machines", scene)
    assert (severity, subjects) == ("note", ("1",))
