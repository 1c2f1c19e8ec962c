"""`headrace demo`: a broker, a small live load, a pipeline on Spark if it can run here, and what there is to look at."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.commands.start import DEFAULT_LISTEN, DEFAULT_METRICS
from headrace.cli.failure import Failure, Misuse
from headrace.cli.parsing import times

if TYPE_CHECKING:
    from headrace.client.load.shop import Shop, Watch

app = options.command_app("See it at work: a broker, a live load and a pipeline.")

SPENDING = "spending"
"""The table that the pipeline keeps."""
_LOOK_SECONDS, _SELDOM = 1.0, 5.0
_END_SECONDS = 30.0


@app.command(
    epilog=options.examples(
        "headrace demo",
        "headrace demo --rate 500 --no-pipeline",
        "headrace demo --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --for 1m",
    )
)
def demo(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the broker listens; port 0 takes a free one.")
    ] = DEFAULT_LISTEN,
    metrics: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where it serves its metrics.")
    ] = DEFAULT_METRICS,
    rate: Annotated[int, typer.Option(min=1, max=20_000, help="Orders a second.")] = 50,
    pipeline: Annotated[
        bool, typer.Option("--pipeline/--no-pipeline", help="Run a pipeline on Spark as well.")
    ] = True,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End by itself after so long. [Ctrl-C ends it]"),
    ] = None,
) -> None:
    """Start a broker and a small shop that uses it, and say what there is to look at.

    Nothing is left behind: the data goes when the demo ends.
    """
    seconds = None if duration is None else times.seconds_of(duration)
    if ":" not in listen:
        raise Misuse(f"--listen takes HOST:PORT, such as {DEFAULT_LISTEN}, not '{listen}'.")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-demo-")))
        # That orders cannot be billed is part of the show, on its status line.
        logging.basicConfig(filename=home / "shop.log")
        bootstrap, pages = stack.enter_context(_broker(home, listen, metrics))
        from headrace.client.load.shop import Shop, Watch

        shop = stack.enter_context(closing(Shop(bootstrap, rate)))
        watch = stack.enter_context(closing(Watch(bootstrap)))
        without = _why_no_pipeline() if pipeline else "left out"
        if not without:
            stack.enter_context(_pipeline(home, bootstrap))
        print("\n".join(_introduction(bootstrap, pages, rate, without)), flush=True)
        _follow(shop, watch, without, seconds)


def _introduction(bootstrap: str, pages: str, rate: int, without: str) -> list[str]:
    lines = [f"A broker is ready on {bootstrap}, and {rate} orders a second go into the topic 'orders'.", ""]
    if bootstrap != DEFAULT_LISTEN:
        lines += ["In another terminal, first:", f"  export HEADRACE_BOOTSTRAP={bootstrap}", ""]
    lines += [
        "Look around in another terminal:",
        r"  headrace consume orders --format '%k %v\n'     the orders as they come",
        "  headrace top                                   brokers, topics, groups and clients at work",
        "  headrace lag watch                             billing keeps up, reports falls behind and catches up",
        "  headrace dlq list orders.dlq                   orders that nobody could bill, and why",
        "  headrace backlog advise reports                what would help a group that is behind",
        f"  {f'curl {pages}':<46} the broker's numbers for Prometheus",
    ]
    if without:
        lines += ["", f"No pipeline on Spark: {without}."]
    else:
        lines.append(
            "  headrace consume spending --from-beginning     what each customer spent, kept by a pipeline on Spark"
        )
    return [*lines, "", "Ctrl-C ends it all."]


def _why_no_pipeline() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "it needs pip install 'headrace[spark]', or make setup in a checkout"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Spark needs a Java 17 or newer"
    return ""


def _follow(shop: Shop, watch: Watch, without: str, seconds: float | None) -> None:
    """Show how the shop does until it ends."""
    from headrace.client.load.shop import BILLING, ORDERS, REPORTS

    live = sys.stdout.isatty()
    began = time.monotonic()
    while True:
        past = time.monotonic() - began
        if seconds is not None and past >= seconds:
            break
        kept = 0 if without else watch.records_in(SPENDING)
        spending = "no pipeline" if without else f"{kept:,} sums by Spark" if kept else "Spark is starting"
        line = (
            f"{past // 60:.0f}:{past % 60:02.0f}  {shop.sold:,} orders, unread: {BILLING} {watch.unread(BILLING):,}, "
            f"{REPORTS} {watch.unread(REPORTS):,}; {watch.records_in(f'{ORDERS}.dlq'):,} dead letters; {spending}"
        )
        print(f"\r\x1b[K{line}" if live else line, end="" if live else "\n", flush=True)
        pause = _LOOK_SECONDS if live else _SELDOM
        time.sleep(pause if seconds is None else max(0.0, min(pause, seconds - past)))
    if live:
        print()


@contextmanager
def _broker(home: Path, listen: str, metrics: str) -> Iterator[tuple[str, str]]:
    """A broker in a process of its own: its address, and that of its metrics."""
    command = ["up", "--data", str(home / "data"), "--listen", listen, "--metrics", metrics]
    command += ["--set", "group.initial.rebalance.delay.ms=0"]
    with (
        (home / "broker.log").open("w") as log,
        _child(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        assert process.stdout is not None
        ready = process.stdout.readline()
        if " is ready: " not in ready:
            process.wait()
            said = (home / "broker.log").read_text().strip().splitlines()
            raise Failure(said[-1].removeprefix("headrace: ") if said else "The broker did not start.")
        address = ready.partition(" on ")[2].partition(",")[0]
        yield address, ready.partition("metrics at ")[2].split()[0].rstrip(",;")


@contextmanager
def _pipeline(home: Path, bootstrap: str) -> Iterator[None]:
    from headrace.pipelines.template import write_project

    write_project(home / "shop", sql=False)
    with (home / "pipeline.log").open("w") as log:
        command = ["pipeline", "run", str(home / "shop"), "-b", bootstrap]
        with _child(command, stdout=log, stderr=subprocess.STDOUT):
            yield


@contextmanager
def _child(command: Sequence[str], **output: object) -> Iterator[subprocess.Popen[str]]:
    """A `headrace` command beside this one, that Ctrl-C leaves to us and that ends with us."""
    process: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", *command],
        text=True,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HEADRACE_SUPERVISOR": str(os.getpid()), "HEADRACE_CONTEXT": ""},
        **output,  # type: ignore[call-overload]
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
