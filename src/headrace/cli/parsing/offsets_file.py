"""Offsets of groups in the CSV that `reset-offsets` and kafka-consumer-groups.sh read and write."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.cli.failure import Failure

Offsets = dict[tuple[str, int], int]


def read(path: Path, groups: Sequence[str]) -> dict[str, Offsets]:
    """Offsets by group, from lines `topic,partition,offset` (for one group) or `group,topic,partition,offset`."""
    try:
        text = path.read_text()
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is no CSV file: it holds binary data.") from None
    found: dict[str, Offsets] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        fields = [field.strip() for field in row]
        if len(fields) == 3 and len(groups) == 1:
            fields.insert(0, groups[0])
        try:
            group, topic, partition, offset = fields
            found.setdefault(group, {})[topic, int(partition)] = int(offset)
        except ValueError:
            raise Failure(
                f"Line {number} of {path} is not 'topic,partition,offset' or 'group,topic,partition,offset'."
            ) from None
    return {group: offsets for group, offsets in found.items() if group in groups}


def text(by_group: Mapping[str, Offsets]) -> str:
    """What `read` reads; with the group only when there are several."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for group, offsets in by_group.items():
        for (topic, partition), offset in offsets.items():
            writer.writerow([*([group] if len(by_group) > 1 else []), topic, partition, offset])
    return out.getvalue()
