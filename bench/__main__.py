"""`python -m bench [--only PART …] [--quick] [--scale S] [--rounds N]`: measure, merge into results.json,
make the tables and the chart.
"""

import argparse
import sys
import time
from collections.abc import Callable

from bench import chart, report, results
from bench.parts import Part, all_parts
from bench.processes import Broken, end_cleanly_on_sigterm
from bench.provision import BUILD, Missing
from bench.results import PartResult, part_result
from bench.session import Session
from bench.systems import ALL


def main() -> int:
    parts = all_parts()
    names = [part.name for part in parts]
    parser = argparse.ArgumentParser(prog="bench", description="Headrace beside Apache Kafka and others.")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PART", help=f"one of: {', '.join(names)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, two rounds; kept out of results.json"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="sizes relative to a full run, which is 1")
    parser.add_argument(
        "--rounds", type=_whole, metavar="N", help="at most N rounds of each comparison; sizes stay full"
    )
    parser.add_argument(
        "--system", action="append", default=[], choices=[kind.name for kind in ALL], help="only these"
    )
    parser.add_argument(
        "--report", action="store_true", help="measure nothing, make the tables and the chart again"
    )
    options = parser.parse_args()
    unknown = [name for entry in options.only for name in entry.split(",") if name not in names]
    if unknown:
        parser.error(f"{unknown[0]} is no part; the parts are {', '.join(names)}")
    chosen = {name for entry in options.only for name in entry.split(",")} or set(names)

    if options.report:
        publish(results.load())
        return 0
    full = not options.quick and options.scale >= 1 and not options.system
    session = Session(
        scale=options.scale * (0.02 if options.quick else 1.0),
        quick=options.quick,
        most_rounds=options.rounds,
        only=frozenset(options.system),
        say=lambda line: print(line, flush=True),
    )
    end_cleanly_on_sigterm()
    # What is not of full size stays beside the published figures, not among them.
    file = results.FILE if full else BUILD / "partial-results.json"

    def keep(result: PartResult) -> None:
        merged = results.merge([result], file)
        if full:
            publish(merged)

    measured, broken = measure(session, [part for part in parts if part.name in chosen], keep)
    for result in measured:
        print(f"\n{result.title}\n{report.table(result)}")
        print("\n".join(report.missed_goals(result)))
    print(
        f"\n{file} holds the figures"
        + ("; bench/RESULTS.md and the charts are made from it." if full else ".")
    )
    for name, reason in broken.items():
        print(f"{name} could not be measured: {reason}", file=sys.stderr)
    return 1 if broken else 0


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one round is needed")
    return number


def measure(
    session: Session, parts: list[Part], keep: Callable[[PartResult], None]
) -> tuple[list[PartResult], dict[str, str]]:
    """Runs the parts in order and keeps each as soon as it is done, so that a run that is ended loses only the
    part under way. One that breaks is named in the end and does not keep the others from running.
    """
    measured: list[PartResult] = []
    broken: dict[str, str] = {}
    try:
        for part in parts:
            print(f"{part.name}: {part.title}", flush=True)
            begun = time.monotonic()
            try:
                rows = part.run(session)
            except (Broken, Missing) as error:
                broken[part.name] = str(error)
                print(f"  {error}", flush=True)
                continue
            measured.append(part_result(part.name, part.title, part.order, session.scale, rows))
            keep(measured[-1])
            print(f"  {part.name} took {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        session.close()
    return measured, broken


def publish(merged: dict[str, PartResult]) -> None:
    """Makes everything that quotes the results."""
    (results.FILE.parent / "RESULTS.md").write_text(report.results_page(merged))
    (results.FILE.parent / "chart.svg").write_text(chart.chart(merged))
    (results.FILE.parent / "highlights.svg").write_text(chart.highlights_chart(merged))
    for file in (report.ROOT / "README.md", report.ROOT / "docs" / "benchmarks.md"):
        report.fill_markers(file, merged)


if __name__ == "__main__":
    sys.exit(main())
