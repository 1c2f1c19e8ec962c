"""Mistakes put into the broker, to prove that the simulator finds them: `python -m tests.simulation.mutations [NAME ...]`.

Each changes a few words of one source file, for one process, on the pure build. `found` is what a run of this command printed: the
number of seeds it took, from seed 1 on.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

MUTATION = "HEADRACE_MUTATION"
PACKAGE = "headrace.server."


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    module: str
    """Below `headrace.server`."""
    old: str
    new: str

    def apply(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.module} has {source.count(self.old)} places like {self.old!r}"
            )
        return source.replace(self.old, self.new)


MUTATIONS = [
    # Replication
    Mutation(
        "acknowledge before the replicas",
        "replica.partition",
        "return offset >= self.log.high_watermark and (acks == -1 or self.sync_before_ack)",
        "return False",
    ),
    Mutation(
        "move the high watermark without the followers",
        "replica.partition",
        "reached = leadership.committed_end(reached)",
        "pass",
    ),
    Mutation(
        "commit with the ISR that is only proposed",
        "replica.leadership",
        "return self.isr if self.proposed is None else self.isr | self.proposed",
        "return self.isr if self.proposed is None else self.proposed",
    ),
    Mutation(
        "let a follower join the ISR before it has everything",
        "replica.leadership",
        "and follower.log_end_offset >= max(high_watermark, self.epoch_start)",
        "and follower.log_end_offset >= 0",
    ),
    Mutation(
        "let a leader that was replaced go on",
        "replica.partition",
        "        if state.leader != broker_id:\n            self._follow(state.leader_epoch)",
        "        if state.leader != broker_id and self.leadership is None:\n            self._follow(state.leader_epoch)",
    ),
    Mutation(
        "truncate to the high watermark",
        "replica.partition",
        "        self.leadership = None\n        if led or leader_epoch != self.leader_epoch:\n",
        "        self.leadership = None\n        if led or leader_epoch != self.leader_epoch:\n            self.log.truncate_to(self.log.high_watermark)\n",
    ),
    Mutation(
        "do not truncate what diverges",
        "replica.fetcher",
        "        partition.truncate(target)\n",
        "",
    ),
    Mutation(
        "skip the check of leader epochs",
        "replica.fetching",
        "if 0 <= epoch != partition.leader_epoch:",
        "if False:",
    ),
    Mutation(
        "tell a follower nothing of divergence",
        "replica.fetching",
        "if epoch < entry.last_fetched_epoch or end_offset < entry.offset:",
        "if False:",
    ),
    Mutation(
        "give readers what is not committed",
        "replica.fetching",
        "            limit = high_watermark\n",
        "            limit = log.log_end_offset\n",
    ),
    # The controller
    Mutation(
        "elect a replica that is not in sync",
        "cluster.elections",
        "return replica in target_isr and acceptable(replica)",
        "return acceptable(replica)",
    ),
    Mutation(
        "lead again in the same epoch",
        "cluster.elections",
        "leader_epoch=partition.leader_epoch + raised,",
        "leader_epoch=partition.leader_epoch,",
    ),
    Mutation(
        "skip a change of the metadata",
        "cluster.node",
        "            for offset, changes in steps:\n",
        "            for offset, changes in steps[-1:]:\n",
    ),
    Mutation(
        "forget that the power was gone",
        "node",
        "kept_its_data=not identity.new and (clean or not identity.rebooted),",
        "kept_its_data=True,",
    ),
    # Disks
    Mutation(
        "give an offset twice",
        "log.partition",
        "            self.log_end_offset = result.last_offset + 1\n        return result",
        "            self.log_end_offset = result.last_offset\n        return result",
    ),
    Mutation(
        "forget where a producer is",
        "log.producers",
        "        batches.append(BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, timestamp))\n",
        "",
    ),
    Mutation(
        "forget the fsync",
        "log.durability",
        "                self.store.sync(self.up_to)\n",
        "",
    ),
    Mutation(
        "forget the fsync of the topic's id",
        "log.store",
        "            sync_partition_metadata(self._environment.files, self.directory)\n",
        "",
    ),
    Mutation(
        "forget the fsync of the directory",
        "log.store",
        "                self._environment.files.sync_directory(self.directory)\n",
        "                pass\n",
    ),
    Mutation(
        "share one temporary file between two writers",
        "log.snapshot_files",
        'name = f"{offset:020d}.{next(self._numbers)}{SUFFIX}{TEMPORARY}"',
        'name = f"{SUFFIX}{TEMPORARY}"',
    ),
    Mutation(
        "write the broker's identity from two threads at once",
        "log.directory",
        "        with self._changing_meta:\n",
        "        if True:\n",
    ),
    Mutation(
        "leave the mark of a clean stop",
        "log.directory",
        "            self.files.remove(mark)\n",
        "",
    ),
    Mutation(
        "keep the torn end of a log",
        "log.recovery",
        '        if segment.size < size:\n            logger.warning(\n                "Cut',
        '        if False:\n            logger.warning(\n                "Cut',
    ),
    Mutation(
        "keep the followers of a hole",
        "log.recovery",
        "        if hole:\n",
        "        if False:\n",
    ),
    # Connections
    Mutation(
        "answer a fetch twice",
        "net.reply_queue",
        "            self.resolve(self.reserve(), parts)",
        "            self.resolve(self.reserve(), parts)\n            self.resolve(self.reserve(), parts)",
    ),
    Mutation(
        "answer out of turn",
        "net.reply_queue",
        "        if self._replies or self._parts:\n            reply = Reply()",
        "        if self._parts:\n            reply = Reply()",
    ),
    # Producers and transactions
    Mutation(
        "take a repeated batch for a new one",
        "log.producers",
        "                    if (retried := entry.find(first_sequence, last_sequence)) is not None:\n                        return retried\n                    if producer_id",
        "                    return None\n                    if producer_id",
    ),
    Mutation(
        "let a fenced producer end a transaction",
        "transactions.rules",
        "    if epoch != current.producer_epoch:\n        raise fenced()\n    _check_not_ending(current)\n",
        "    _check_not_ending(current)\n",
    ),
    Mutation(
        "believe every marker was written",
        "transactions.markers",
        "    return code is ErrorCode.NONE",
        "    return True",
    ),
    Mutation(
        "abort what was to be committed",
        "transactions.markers",
        "        committed = transaction.status is Status.PREPARE_COMMIT\n        producer_id, epoch",
        "        committed = leader == self._broker_id and transaction.status is Status.PREPARE_COMMIT\n        producer_id, epoch",
    ),
    Mutation(
        "show readers of committed records an open transaction",
        "replica.fetching",
        "            limit = log.last_stable_offset\n",
        "            limit = high_watermark\n",
    ),
    Mutation(
        "do not tell which transactions were aborted",
        "replica.fetching",
        "reply.aborted = [(one.producer_id, one.first_offset) for one in aborted]",
        "reply.aborted = []",
    ),
    # Groups
    Mutation(
        "forget to undo a static member",
        "groups.classic.join",
        "                restored = group.replace_static(instance_id, new_id, old_id)\n                expect_heartbeat(state, group, restored)\n",
        "",
    ),
    Mutation(
        "take a commit of an older generation",
        "groups.classic.group",
        "            if generation != self.generation:\n                raise KafkaError(\n                    ErrorCode.ILLEGAL_GENERATION",
        "            if False:\n                raise KafkaError(\n                    ErrorCode.ILLEGAL_GENERATION",
    ),
    Mutation(
        "keep the generation when the members change",
        "groups.classic.group",
        "        self.generation += 1\n",
        "",
    ),
    Mutation(
        "give a partition away before its owner let go",
        "groups.consumer.reconciliation",
        "for partition in missing if not is_owned(topic_id, partition))",
        "for partition in missing)",
    ),
]
BY_NAME = {each.name: each for each in MUTATIONS}


class _MutatedLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutation: Mutation) -> None:
        super().__init__(fullname, path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        with open(self.path, encoding="utf-8") as file:
            return compile(self._mutation.apply(file.read()), self.path, "exec")


class _Finder:
    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != PACKAGE + self._mutation.module or path is None:
            return None
        file = os.path.join(path[0], name.rpartition(".")[2] + ".py")
        return importlib.util.spec_from_file_location(
            name, file, loader=_MutatedLoader(name, file, self._mutation)
        )


def install(mutation: Mutation) -> None:
    """Import the changed source instead of the real one, in this process."""
    sys.meta_path.insert(0, _Finder(mutation))


def seeds_until_found(mutation: Mutation, seeds: int, cores: int) -> int | None:
    command = [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds), "--cores", str(cores)]
    done = subprocess.run(
        [*command, "--no-shrink", "--first-failure"],
        env={**os.environ, MUTATION: mutation.name},
        capture_output=True,
        text=True,
        check=False,
    )
    ran = re.findall(r"^seed \d+: (\w+)", done.stdout, re.MULTILINE)
    if "failed" in ran:
        first = re.search(r"failed.*\n {4}(.*)", done.stdout)
        print(
            f"{mutation.name}: found after {len(ran)} seeds: {first.group(1)[:160] if first else ''}",
            flush=True,
        )
        return len(ran)
    print(f"{mutation.name}: NOT FOUND in {len(ran)} seeds {done.stderr[-300:]}", flush=True)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which mutations (all)")
    parser.add_argument("--seeds", type=int, default=40, help="how many seeds each may take (40)")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = [BY_NAME[name] for name in options.names] or MUTATIONS
    found = [seeds_until_found(each, options.seeds, options.cores) for each in chosen]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
