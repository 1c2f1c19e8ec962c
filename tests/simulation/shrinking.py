"""The shortest schedule of faults that still fails: leave out halves, then quarters, then single faults."""

from __future__ import annotations

from tests.simulation.pool import Job, run_jobs
from tests.simulation.scenario import FULL, Storm, Verdict

MOST_RUNS = 80


def shrink(verdict: Verdict, cores: int, storm: Storm = FULL) -> list[int]:
    """The numbers of the faults that are left."""
    kept = [each.number for each in verdict.plan]
    runs = 0
    size = max(1, len(kept) // 2)
    while kept and runs < MOST_RUNS:
        candidates = [kept[:start] + kept[start + size :] for start in range(0, len(kept), size)]
        runs += len(candidates)
        smaller = None
        for job, found in run_jobs([Job(verdict.seed, tuple(each), storm) for each in candidates], cores):
            if found.troubles and (smaller is None or len(job.kept or ()) < len(smaller)):
                smaller = list(job.kept or ())
        if smaller is not None:
            kept = smaller
            size = min(size, max(1, len(kept) // 2))
        elif size == 1:
            break
        else:
            size = max(1, size // 2)
    return kept
