"""`headrace dump-log`: what is in a partition's files, and whether it is sound. Needs no broker."""

from __future__ import annotations

import base64
import glob
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.failure import Failure
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.view.dump.segment_file import Batch
    from headrace.wire.records import Record

app = options.command_app("Print what is in a partition's files.")

_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@app.command(
    epilog=options.examples(
        "headrace dump-log data/orders-0",
        "headrace dump-log data/orders-0/00000000000000000000.log --records",
        "headrace dump-log data/orders-0 --verify",
        "headrace dump-log data/__consumer_offsets-12 --records",
    )
)
def dump_log(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE|DIR…", help="Files of a partition, or its directory.")
    ],
    records: Annotated[
        bool, typer.Option("--records", "-r", help="Also the records, with keys and values.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Print only what is wrong: checksums, offsets, indexes.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print each batch, record or entry as a line of JSON.")
    ] = False,
) -> None:
    """Print the batches, records and index entries of a partition's files."""
    files = list(_files(paths))
    if verify:
        _verify([file for file in files if file.suffix == ".log"], json)
        return
    for file in files:
        try:
            if json:
                for entry in _json_entries(file, records):
                    print(output.json_line({"file": str(file), **entry}))
            else:
                print(f"{file}:" if file.stat().st_size else f"{file}: empty")
                for line in _lines(file, records):
                    print(f"  {line}")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(f"Cannot read {file}: {error.strerror}.") from None


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
            if not found:
                raise Failure(
                    f"{path} holds no segments; name a partition's directory, such as data/orders-0."
                )
            yield from found
        elif not path.exists():
            raise Failure(f"There is no file or directory {path}.{_where_it_may_be(path)}")
        elif path.suffix not in _SUFFIXES:
            raise Failure(f"{path} is none of a partition's files ({', '.join(_SUFFIXES)}).")
        else:
            yield path


def _where_it_may_be(path: Path) -> str:
    """A hint when a topic or partition is named instead of its directory."""
    if path.name != str(path):
        return ""
    found = sorted(
        str(near)
        for near in (
            *Path().glob(f"*/{glob.escape(path.name)}"),
            *Path().glob(f"*/{glob.escape(path.name)}-*"),
        )
        if near.is_dir()
    )
    if found:
        return f" Did you mean {', '.join(found[:3])}{', …' if len(found) > 3 else ''}?"
    return f" Name a partition's directory below the broker's data directory, such as data/{path.name}-0."


def _lines(file: Path, records: bool) -> Iterator[str]:
    from headrace.cli.view.dump import indexes, text
    from headrace.cli.view.dump.segment_file import SegmentFile

    if file.suffix == ".log":
        segment, decoder = SegmentFile(file), _decoder(file)
        for batch in segment:
            yield text.batch_line(batch)
            for record in batch.records() if records else ():
                key, payload = (None, None) if batch.header.is_control else decoder(record)
                line = f"| {text.record_line(batch.header, record)}"
                yield (
                    line
                    + (f" key: {key}" if key is not None else "")
                    + (f" payload: {payload}" if payload is not None else "")
                )
        if segment.trailing:
            yield f"{segment.trailing} bytes at the end are no batch"
    elif file.suffix == ".index":
        yield from (f"offset: {e.offset} position: {e.position}" for e in indexes.offset_entries(file))
    elif file.suffix == ".timeindex":
        yield from (f"timestamp: {e.timestamp} offset: {e.offset}" for e in indexes.time_entries(file))
    elif file.suffix == ".txnindex":
        yield from map(text.aborted_line, indexes.aborted_transactions(file))
    else:
        yield from map(text.producer_line, indexes.producers(file))


def _json_entries(file: Path, records: bool) -> Iterator[dict[str, Any]]:
    from dataclasses import asdict

    from headrace.cli.view.dump import indexes
    from headrace.cli.view.dump.segment_file import SegmentFile

    if file.suffix == ".log":
        segment = SegmentFile(file)
        for batch in segment:
            yield _json_batch(batch)
            yield from map(_json_record, batch.records() if records else ())
        if segment.trailing:
            yield {"trailing_bytes": segment.trailing}
    elif file.suffix == ".index":
        yield from (entry._asdict() for entry in indexes.offset_entries(file))
    elif file.suffix == ".timeindex":
        yield from (entry._asdict() for entry in indexes.time_entries(file))
    elif file.suffix == ".txnindex":
        yield from (aborted._asdict() for aborted in indexes.aborted_transactions(file))
    else:
        for producer in indexes.producers(file):
            yield {**asdict(producer), "batches": [batch._asdict() for batch in producer.batches]}


def _json_batch(batch: Batch) -> dict[str, Any]:
    header = batch.header
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.records_count,
        "position": batch.position,
        "size": header.size,
        "codec": header.codec.name.lower(),
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "valid": batch.is_valid,
    }


def _json_record(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _json_bytes(record.key),
        "value": _json_bytes(record.value),
        "headers": [[name, _json_bytes(value)] for name, value in record.headers],
    }


def _json_bytes(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _decoder(file: Path) -> Any:
    from headrace.cli.view.dump import decoders

    return (
        decoders.offsets if file.absolute().parent.name.startswith("__consumer_offsets-") else decoders.text
    )


def _verify(logs: list[Path], json: bool) -> None:
    from headrace.cli.view.dump.verify import verify
    from headrace.cli.view.progress import Progress

    total = sum(log.stat().st_size for log in logs)
    reports = []
    with Progress("Verifying", total, "bytes") as progress:
        for log in logs:
            reports.append(verify(log, progress.advance))
    if json:
        output.json_document([report.as_json() for report in reports])
    else:
        for report in reports:
            state = "sound" if not report.findings else "damaged"
            print(f"{report.file}: {report.batches} batches, {report.records} records, {state}")
            for finding in report.findings:
                print(f"  {finding}")
    damaged = sum(bool(report.findings) for report in reports)
    if damaged:
        raise Failure(
            f"{damaged} of {len(reports)} segments are damaged; a broker recovers what it can when it starts."
        )
