"""The interpreter of Spark's Python processes on this machine: this one, started without Spark's zip of PySpark.

Spark puts its pyspark.zip before everything else on their path. Bytecode from a zip is not cached, so each process
compiles PySpark anew, for three times as long as it takes to load it from where it is installed. On a busy machine that
takes longer than the ten seconds, fixed in Spark, after which "Python worker failed to connect back".
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from headrace.replacing import replace_file

_LAUNCHER = """\
#!/bin/sh
# Made by headrace for Spark's Python processes: PySpark as it is installed, with its bytecode, and not from the zip.
set -f
kept=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        {lib}/*.zip) ;;
        *) kept=${{kept:+$kept:}}$entry ;;
    esac
done
unset IFS
export PYTHONPATH="$kept"
if [ -n "$PYTHONDONTWRITEBYTECODE" ]; then
    # Nothing is written beside the sources, as was asked, and yet not compiled by each process.
    unset PYTHONDONTWRITEBYTECODE
    export PYTHONPYCACHEPREFIX={cache}
fi
exec {python} "$@"
"""


def worker_python(directory: Path) -> str:
    """What to start Spark's local Python processes with; ``directory`` is where the launcher and its cache may be kept."""
    home = Path(pyspark.__path__[0]).resolve()
    if Path(_find_spark_home()).resolve() != home:
        return sys.executable  # another Spark, which may need its own PySpark
    directory = directory.absolute()
    launcher = directory / "python"
    text = _LAUNCHER.format(
        lib=shlex.quote(str(home / "python" / "lib")),
        cache=shlex.quote(str(directory / "pycache")),
        python=shlex.quote(sys.executable),
    )
    if not launcher.exists() or launcher.read_text() != text:
        replace_file(launcher, text, durable=False, mode=0o755)
    return str(launcher)


def use(directory: Path) -> None:
    """Let Spark, which is started later, use it, unless the user has chosen another interpreter."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable:
        os.environ["PYSPARK_PYTHON"] = worker_python(directory)
