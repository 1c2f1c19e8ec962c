"""kafka-dump-log.sh (DumpLogSegments)"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.view.dump.decoders import Decoder

_DECODERS = ("offsets_decoder", "value_decoder_class", "key_decoder_class")
_UNBOUNDED = 2**31 - 1


def run(arguments: list[str]) -> int:
    options = _parser().parse(arguments)
    options.print_data_log = options.print_data_log or any(getattr(options, name) for name in _DECODERS)
    complaints: list[str] = []
    try:
        decoder = _decoder(options)
        for name in options.files.split(","):
            path = Path(name)
            print(f"Dumping {path}")
            _dump(path, options, decoder, complaints)
    except Failure as failure:
        complaints.append(failure.sentence)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return Exit.FAILED if complaints else Exit.OK


def _parser() -> KafkaParser:
    parser = KafkaParser("dump-log", "Parse a log file and dump its contents to the console.")
    parser.flag("--files", required=True, metavar="FILE,…", help="The data and index files to dump.")
    parser.switch("--print-data-log", help="Print the messages; set by any decoder flag.")
    parser.switch("--deep-iteration", help="Go through the records, not only through the batches.")
    parser.switch("--skip-record-metadata", help="Without the metadata of each record.")
    parser.switch("--verify-index-only", help="Verify the indexes without printing them.")
    parser.switch("--index-sanity-check", help="Only check that indexes would not be rebuilt at start-up.")
    parser.flag("--max-message-size", type=int, default=5 * 1024 * 1024, help="The largest message.")
    parser.flag("--max-bytes", type=int, default=_UNBOUNDED, help="Read only so many bytes of a log file.")
    parser.flag("--value-decoder-class", nargs="?", const="StringDecoder", help="Kafka's own decoders only.")
    parser.flag("--key-decoder-class", nargs="?", const="StringDecoder", help="Kafka's own decoders only.")
    parser.switch("--offsets-decoder", help="Parse the data as __consumer_offsets.")
    parser.switch("--cluster-metadata-decoder", help="Not offered: Headrace has no metadata log.")
    return parser


def _decoder(options: Namespace) -> Decoder:
    from headrace.cli.view.dump import decoders

    if options.cluster_metadata_decoder:
        raise Failure(
            "Headrace keeps the cluster's facts in its store, not in a metadata log; there is none to decode."
        )
    if options.offsets_decoder:
        return decoders.offsets
    return decoders.by_classes(options.key_decoder_class, options.value_decoder_class)


def _dump(path: Path, options: Namespace, decoder: Decoder, complaints: list[str]) -> None:
    from headrace.cli.view.dump import indexes, text

    try:
        if path.suffix == ".log":
            _dump_log(path, options, decoder, complaints)
        elif path.suffix == ".index":
            _dump_offset_index(path, options, complaints)
        elif path.suffix == ".timeindex":
            _dump_time_index(path, options, complaints)
        elif path.suffix == ".snapshot":
            for entry in indexes.producers(path):
                print(text.producer_line(entry))
        elif path.suffix == ".txnindex":
            for aborted in indexes.aborted_transactions(path):
                print(text.aborted_line(aborted))
        else:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None


def _dump_log(path: Path, options: Namespace, decoder: Decoder, complaints: list[str]) -> None:
    from headrace.cli.view.dump import text
    from headrace.cli.view.dump.segment_file import SegmentFile

    segment = SegmentFile(path, None if options.max_bytes == _UNBOUNDED else options.max_bytes)
    print(f"Log starting offset: {segment.base_offset}")
    gaps: list[str] = []
    last = -1
    for batch in segment:
        print(text.batch_line(batch))
        if not (options.deep_iteration or options.print_data_log):
            continue
        for record in batch.records():
            if last != -1 and record.offset != last + 1:
                gaps.append(f"  {last} is followed by {record.offset}")
            last = record.offset
            line = "" if options.skip_record_metadata else text.record_line(batch.header, record)
            if options.print_data_log and not batch.header.is_control:
                key, payload = decoder(record)
                if key is not None:
                    line += f"{' ' if line else ''}key: {key}"
                if payload is not None:
                    line += f" payload: {payload}"
            print(f"| {line}")
    if gaps:
        complaints += [f"Non-consecutive offsets in {path.absolute()}", *gaps]
    if segment.trailing and options.max_bytes == _UNBOUNDED:
        print(f"Found {segment.trailing} invalid bytes at the end of {path.name}")


def _dump_offset_index(path: Path, options: Namespace, complaints: list[str]) -> None:
    from headrace.cli.view.dump.indexes import IndexedLog, offset_entries

    entries = list(offset_entries(path))
    if not entries or entries == [(0, 0)]:
        print(f"{path} is empty.")
        return
    if options.index_sanity_check:
        _check_sanity(path, 8, complaints)
        return
    mismatches = []
    with IndexedLog(path.with_suffix(".log")) as log:
        for entry in entries:
            found = log.offset_mismatch(entry)
            if found is not None:
                mismatches.append(f"  Index offset: {entry.offset}, log offset: {found}")
            if not options.verify_index_only:
                print(f"offset: {entry.offset} position: {entry.position}")
    if mismatches:
        complaints += [f"Mismatches in :{path.absolute()}", *mismatches]


def _dump_time_index(path: Path, options: Namespace, complaints: list[str]) -> None:
    from headrace.cli.view.dump.indexes import IndexedLog, time_entries

    if options.index_sanity_check:
        _check_sanity(path, 12, complaints)
        return
    wrong_times: list[str] = []
    disorder: list[str] = []
    missing: list[str] = []
    previous = -1
    with IndexedLog(path.with_suffix(".log")) as log:
        for entry in time_entries(path):
            found = log.time_mismatch(entry)
            if found is not None and found.offset_found is not None:
                missing.append(f"Indexed offset: {entry.offset}, found log offset: {found.offset_found}")
            elif found is not None:
                wrong_times.append(
                    f"  Index timestamp: {entry.timestamp}, log timestamp: {found.timestamp_found}"
                )
            if previous >= entry.timestamp:
                disorder.append(
                    f"  Index timestamp: {entry.timestamp}, Previously indexed timestamp: {previous}"
                )
            if not options.verify_index_only:
                print(f"timestamp: {entry.timestamp} offset: {entry.offset}")
            previous = entry.timestamp
    name = path.absolute()
    for title, lines in (
        (f"Found timestamp mismatch in :{name}", wrong_times),
        (f"Found out of order timestamp in :{name}", disorder),
        ("The following indexed offsets are not found in the log.", missing),
    ):
        complaints += [title, *lines] if lines else []


def _check_sanity(path: Path, entry_size: int, complaints: list[str]) -> None:
    if path.stat().st_size % entry_size:
        complaints.append(
            f"{path} has a size that is no multiple of {entry_size}; it would be rebuilt at start-up."
        )
    else:
        print(f"{path} passed sanity check.")
