"""`make faults`, or `python -m faults --seed 7 --minutes 3 --only kill,partition`."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from faults.campaign import Campaign
from faults.catalogue import CATALOGUE, chosen
from faults.cluster import Cluster
from faults.supervised import GROUPS, SupervisedCluster


def main() -> int:
    groups = "; ".join(f"{group} ({', '.join(faults)})" for group, faults in CATALOGUE.items())
    parser = argparse.ArgumentParser(prog="faults", description=__doc__, epilog=f"Faults: {groups}.")
    parser.add_argument("--seed", type=int, help="what decides the schedule (default: a new one, printed)")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long faults go on (default: 3)")
    parser.add_argument("--only", default="", help="groups or names of faults, separated by commas")
    parser.add_argument("--zookeepers", type=int, default=1, choices=(1, 3), help="servers of the ensemble")
    parser.add_argument(
        "--supervised",
        action="store_true",
        help="`headrace up --brokers 3` and the embedded store in place of ZooKeeper; faults of processes only",
    )
    parser.add_argument("--rate", type=int, default=300, help="records a second of each producer")
    parser.add_argument("--keep", action="store_true", help="keep the data although nothing went wrong")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    if arguments.supervised and not only:
        only = GROUPS
    faults = chosen(only)
    unknown = [name for name in only if name not in CATALOGUE and name not in faults]
    if unknown:
        parser.error(f"there is no fault {', '.join(unknown)}")
    seed = arguments.seed if arguments.seed is not None else random.randrange(1_000_000)
    directory = Path(tempfile.mkdtemp(prefix=f"headrace-faults-{seed}-"))
    print(f"seed {seed}, {len(faults)} kinds of faults, data in {directory}", flush=True)
    campaign = Campaign(
        SupervisedCluster(directory) if arguments.supervised else Cluster(directory, arguments.zookeepers),
        seed,
        lambda line: print(line, flush=True),
        arguments.rate,
    )
    problems = campaign.run(faults, arguments.minutes)
    for line in campaign.figures.lines():
        print(line)
    for problem in problems:
        print(f"BROKEN: {problem}")
    if problems:
        print(f"seed {seed}: {len(problems)} promises broken; data and logs are in {directory}")
        return 1
    if not arguments.keep:
        shutil.rmtree(directory)
    print(f"seed {seed}: every promise was kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
