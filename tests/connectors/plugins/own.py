"""Connectors as docs/connectors.md tells people to write them."""

import json
import os
from dataclasses import dataclass

from headrace.connectors import BadRow, PolledSource, Sink, setting


@dataclass(frozen=True)
class NumbersSettings:
    up_to: int = setting("The last number.", minimum=1)


class Numbers(PolledSource):
    delivery = "exactly once"
    summary = "Numbers, for those who need some."
    Settings = NumbersSettings

    def start(self):
        return {"at": 0}

    def latest(self, after):
        return {"at": min(after["at"] + 40, self.settings.up_to)}

    def rows(self, after, until):
        for number in range(after["at"], until["at"]):
            yield BadRow(b"13", "it is unlucky") if number == 13 else {"number": number}


@dataclass(frozen=True)
class TallySettings:
    path: str = setting("A file for the sum.")
    field: str = setting("What to add up.")


class Tally(Sink):
    """Sum and offset in one file, renamed into place: one writer, so one partition."""

    delivery = "exactly once"
    summary = "Adds up a field."
    Settings = TallySettings

    def write(self, chunk):
        try:
            with open(self.settings.path) as file:
                known = json.load(file)
        except FileNotFoundError:
            known = {"sum": 0, "offset": 0}
        rows = [row for row in chunk.rows.to_pylist() if row["_offset"] >= known["offset"]]
        known = {"sum": known["sum"] + sum(row[self.settings.field] for row in rows), "offset": chunk.next}
        with open(self.settings.path + ".new", "w") as file:
            json.dump(known, file)
        os.replace(self.settings.path + ".new", self.settings.path)
