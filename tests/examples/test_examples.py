"""The examples do what they say: run as a user runs them, only smaller."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
Play = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(name: str, **sizes: int) -> dict[str, Any]:
        command = [sys.executable, "-m", f"examples.{name}", "--out", str(tmp_path / "out")]
        command += [part for size, value in sizes.items() for part in (f"--{size}", str(value))]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        for chart in (tmp_path / "out").glob("*.svg"):
            assert chart.read_text().count("<polyline") >= 2
        return json.loads((tmp_path / "out" / "facts.json").read_text())

    return run


def test_activity_counts_every_view_and_keeps_all_in_a_lake_by_day(play: Play) -> None:
    facts = play("activity", events=2000)
    assert (
        facts["views_in_finished_minutes"] == facts["views"] - 1
    )  # The one of the next morning has just begun.
    assert facts["views_in_the_table"] == facts["views"]
    assert facts["rows_in_the_lake"] == facts["events"]
    assert facts["days_in_the_lake"] == ["2026-11-15", "2026-11-16"]
    assert facts["profiles"] > 10


@pytest.mark.long
def test_logs_of_rotated_files_are_collected_once_and_counted(play: Play) -> None:
    facts = play("logs", lines=1200)
    assert facts["lines_collected"] == facts["lines_written"] == 1201
    assert facts["lines_parsed"] == 1200
    assert facts["lines_set_aside"] == 1
    assert facts["errors_counted"] == facts["errors_written"]
    assert facts["worst_service"] == "checkout"


def test_a_flash_sale_is_never_oversold_and_catches_up_with_its_statistics(play: Play) -> None:
    facts = play("flash_sale", buyers=2000, stock=100, deadline=20)
    assert facts["accepted"] == 2100
    assert facts["sold"] == facts["different_buyers"] == 100
    assert facts["oversold"] == 0
    assert facts["sold"] + facts["sold_out"] + facts["too_late"] + facts["clicked_twice"] == 2100
    # The statistics were left out under load, and are right afterwards.
    assert facts["left_out_of_the_statistics"] == facts["counted_afterwards"] > 0
    assert facts["counted_at_the_peak"] + facts["counted_afterwards"] == facts["counted_in_all"] == 2100
    assert facts["buyers_counted_wrong"] == 0


def assert_everybody_had_each_order_once(facts: dict[str, Any]) -> None:
    assert facts["alerts"] == facts["alerts_expected"] > 0
    assert facts["text_messages"] == facts["orders"]
    assert facts["revenue"] == facts["revenue_expected"]
    assert facts["every_order_exactly_once"] == "yes"


def test_an_order_reaches_everybody_once(play: Play) -> None:
    assert_everybody_had_each_order_once(play("orders", orders=200))


def test_an_order_reaches_everybody_once_though_the_database_is_locked_meanwhile(
    play: Play, tmp_path: Path
) -> None:
    still_playing: list[bool] = []

    def lock_it_for_seconds() -> None:
        """Longer than SQLite waits by default, while orders are taken, told or counted."""
        database = tmp_path / "out" / "shop.sqlite"
        while orders_in(database) == 0:
            time.sleep(0.01)
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as other:
            while not other.in_transaction:
                with suppress(sqlite3.OperationalError):  # an order is being taken
                    other.execute("BEGIN EXCLUSIVE")
            time.sleep(7)
            still_playing.append(not (tmp_path / "out" / "facts.json").exists())
            other.execute("ROLLBACK")

    locking = threading.Thread(target=lock_it_for_seconds, daemon=True)
    locking.start()
    facts = play("orders", orders=400)
    locking.join()
    assert still_playing == [True], "it was locked in the midst of the play"
    assert_everybody_had_each_order_once(facts)


def orders_in(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=60)) as looking:
        try:
            return int(looking.execute("SELECT count(*) FROM orders").fetchone()[0])
        except sqlite3.OperationalError:  # its tables are being made
            return 0


@pytest.mark.long
def test_a_fixed_pipeline_counts_anew_beside_the_old_version(play: Play) -> None:
    facts = play("reprocess", payments=600)
    assert facts["yen_in_version_2"] == facts["yen_paid"]
    assert facts["yen_in_version_1"] < facts["yen_paid"] // 50
    assert facts["version_1_is_still_there"]
    assert facts["euros_agree"]


def test_ctrl_c_ends_an_example_and_its_broker_without_a_word(tmp_path: Path) -> None:
    database = tmp_path / "out" / "shop.sqlite"
    command = [sys.executable, "-m", "examples.orders", "--out", str(database.parent), "--orders", "1000000"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as example:
        while not database.exists() and example.poll() is None:
            time.sleep(0.05)
        os.killpg(example.pid, signal.SIGINT)  # as a terminal does
        printed, complaints = example.communicate(timeout=60)
    assert (example.returncode, printed, complaints) == (130, "", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(example.pid, 0)


def test_a_directory_with_other_files_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    command = [sys.executable, "-m", "examples.orders", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "name another with --out" in done.stderr
    assert (tmp_path / "mine").read_text() == "precious"
