"""User activity: one topic per activity, live views per minute, a profile per user, and all of it in a lake by day."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow.dataset as ds

from examples.chart import line_chart
from examples.kit import Stage, stage, tell
from headrace.client import Producer, serializers

PAGES = ("/", "/shoes", "/shirts", "/basket", "/help")
START = datetime(2026, 11, 15, 23, 45, tzinfo=UTC)
MINUTES = 30
LAKE = """\
name = "lake"

[topic]
name = ["activity.page_view", "activity.search", "activity.purchase"]
schema = "user STRING, page STRING, query STRING, amount DOUBLE, at TIMESTAMP"

[sink]
type = "lake"
path = "{path}"
time_field = "at"
metadata = true
"""


def visits(stage: Stage) -> Counter[str]:
    """Half an hour around midnight, quickly: what people did, in the order in which it reaches the cluster."""
    chance, sent = random.Random(1), Counter[str]()
    with Producer(stage.bootstrap, value_serializer=serializers.json()) as producer:

        def send(activity: str, user: str, at: datetime, **what: object) -> None:
            # A phone without a signal delivers up to a minute later.
            producer.send_and_forget(
                f"activity.{activity}", {"user": user, **what, "at": at.isoformat()}, key=user
            )
            sent[activity] += 1

        events = sorted(chance.uniform(0, MINUTES * 60) for _ in range(stage.sizes.events))
        for seconds in events:
            at = START + timedelta(
                seconds=max(0.0, seconds - chance.choice((0, 0, 0, 0, chance.uniform(0, 60))))
            )
            user = f"user-{int(chance.paretovariate(1.2)) % 500}"
            kind = chance.random()
            if kind < 0.8:
                page = chance.choices(PAGES, (5, 3, 2 + 6 * (seconds > 900), 1, 0.3))[0]
                send("page_view", user, at, page=page)
            elif kind < 0.95:
                send("search", user, at, query=chance.choice(("boots", "socks", "red shirt")))
            else:
                send("purchase", user, at, amount=round(chance.uniform(5, 200), 2))
        # The next morning: a view after which the minutes of the night are over.
        send("page_view", "user-0", START + timedelta(hours=8), page="/")
    return sent


def play(stage: Stage) -> None:
    for activity in ("page_view", "search", "purchase"):
        stage.topic(f"activity.{activity}")
    sent = visits(stage)
    print(f"{sent.total():,} events in three topics")
    stage.headrace("pipeline", "run", stage.project("activity"), "--once")
    (stage.out / "lake.toml").write_text(LAKE.format(path=stage.out / "lake"))
    stage.headrace("connect", "run", stage.out / "lake.toml", "--once")

    minutes = stage.rows("views.per_minute")
    lines: dict[str, list[tuple[float, float]]] = {page: [] for page in PAGES[:3]}
    for row in sorted(minutes, key=lambda each: each["minute"]):
        if row["page"] in lines:
            since = datetime.fromisoformat(row["minute"]) - START
            lines[row["page"]].append((since.total_seconds() / 60, row["count"]))
    line_chart(stage.out / "views.svg", "Page views per minute", "minutes", "views", lines)
    now = {row["page"]: row["count"] for row in stage.rows("views.now")}
    lake = ds.dataset(stage.out / "lake", partitioning="hive").to_table(columns=["_topic", "date"])
    tell(
        stage,
        events=sent.total(),
        views=sent["page_view"],
        views_in_finished_minutes=sum(row["count"] for row in minutes),
        views_in_the_table=sum(now.values()),
        profiles=len({row["user"] for row in stage.rows("profiles")}),
        rows_in_the_lake=lake.num_rows,
        days_in_the_lake=sorted(set(lake["date"].to_pylist())),
    )


with stage("activity", __doc__, events=20_000) as place:
    play(place)
