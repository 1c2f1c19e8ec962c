"""`make simulate ARGS="--seeds 1000 --minutes 60"`: one line per seed; a seed that fails is shrunk, and the command that replays it printed."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.simulation.pool import Job, run_jobs
from tests.simulation.record import note_run
from tests.simulation.scenario import BRIEF, FULL, Verdict, simulate
from tests.simulation.shrinking import shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds to run (20)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (1)")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="begin no seed after so many minutes (60)"
    )
    parser.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="seeds that run at once (all cores)"
    )
    parser.add_argument(
        "--no-shrink", action="store_true", help="do not look for the shortest schedule that fails"
    )
    parser.add_argument(
        "--replay", type=int, metavar="SEED", help="run one seed in this process and print its trace"
    )
    parser.add_argument("--only", metavar="N,N", help="with --replay: leave in only these faults")
    parser.add_argument("--record", action="store_true", help="add the run to tests/simulation/runs.jsonl")
    parser.add_argument("--brief", action="store_true", help="short storms, as in make test")
    parser.add_argument("--first-failure", action="store_true", help="stop at the first seed that fails")
    options = parser.parse_args()
    if options.replay is not None:
        kept = None if options.only is None else [int(each) for each in options.only.split(",") if each]
        verdict = simulate(options.replay, print, kept, BRIEF if options.brief else FULL)
        print(line_of(verdict))
        sys.stdout.flush()
        os._exit(1 if verdict.troubles else 0)
    return campaign(options)


def campaign(options: argparse.Namespace) -> int:
    began = time.monotonic()
    storm = BRIEF if options.brief else FULL
    jobs = (Job(seed, None, storm) for seed in range(options.first, options.first + options.seeds))
    failed: list[Verdict] = []
    verdicts: list[Verdict] = []
    for _, verdict in run_jobs(jobs, options.cores, lambda: time.monotonic() - began < options.minutes * 60):
        verdicts.append(verdict)
        print(line_of(verdict), flush=True)
        if verdict.troubles:
            failed.append(verdict)
            if options.first_failure:
                break
            if options.first_failure:
                break
    for verdict in failed:
        kept = None if options.no_shrink else shrink(verdict, options.cores, storm)
        report(verdict, kept, options.brief)
    seconds = time.monotonic() - began
    if verdicts:
        if options.record:
            note_run(verdicts, seconds, options.cores)
        print(
            f"{len(verdicts)} seeds in {seconds:.0f} s on {options.cores} cores: {len(failed)} failed; "
            f"{sum(each.seconds for each in verdicts) / 3600:.2f} hours of virtual time, "
            f"{sum(each.faults for each in verdicts)} faults, {sum(each.writes for each in verdicts)} acknowledged writes, "
            f"{sum(each.cpu for each in verdicts) / len(verdicts):.1f} s of CPU a seed"
        )
    return 1 if failed else 0


def line_of(verdict: Verdict) -> str:
    state = "failed" if verdict.troubles else "passed"
    return (
        f"seed {verdict.seed}: {state}, {verdict.seconds:.0f} s, {verdict.faults} faults, {verdict.writes} writes, "
        f"{verdict.cpu:.1f} s of CPU, trace {verdict.digest:08x}"
        + "".join(f"\n    {trouble[:400]}" for trouble in verdict.troubles[:3])
    )


def report(verdict: Verdict, kept: list[int] | None, brief: bool) -> None:
    print(f"\nSeed {verdict.seed} fails: {verdict.troubles[0][:1000]}")
    only = " --brief" if brief else ""
    if kept is not None:
        only += f" --only {','.join(map(str, kept))}" if kept else ' --only ""'
        print(f"With {len(kept)} of {len(verdict.plan)} faults:")
        for each in verdict.plan:
            if each.number in kept:
                print(f"    {each}")
    print(f'Replay it: make simulate ARGS="--replay {verdict.seed}{only}"')
