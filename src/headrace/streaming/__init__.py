"""What pipelines and connectors share: Spark's session, the lock and the files of a run, Spark's errors in plain sentences,
progress, restarts and the supervision of a run from start to stop.

Callable from Python: `headrace.pipelines.run` and `headrace.connectors.run` build on it, and so do the commands.
"""
