"""Replay after a fix: a pipeline counted wrongly for weeks; the log still has every payment, so a new version counts anew."""

import random
from collections import Counter, defaultdict

from examples.kit import Stage, stage, tell
from headrace.client import Producer, serializers

COUNTRIES = {"DE": ("EUR", 100), "JP": ("JPY", 1), "US": ("USD", 100)}
MISTAKE = "MINOR_UNITS = F.lit(100)"
FIX = 'MINOR_UNITS = F.when(F.col("currency") == "JPY", 1).otherwise(100)'


def pay(stage: Stage, first: int, count: int, truth: Counter[str]) -> None:
    chance = random.Random(first)
    with Producer(stage.bootstrap, value_serializer=serializers.json()) as producer:
        for number in range(first, first + count):
            country = chance.choice(list(COUNTRIES))
            currency, units = COUNTRIES[country]
            amount = chance.randint(1, 500)
            row = {"id": number, "country": country, "currency": currency, "minor": amount * units}
            producer.send_and_forget("payments", row, key=str(number))
            truth[country] += amount


def table(stage: Stage, name: str) -> dict[str, float]:
    """What a table says: the latest row of each key."""
    return defaultdict(float, {row["country"]: row["amount"] for row in stage.rows(name)})


def play(stage: Stage) -> None:
    stage.topic("payments")
    truth = Counter[str]()
    pay(stage, 0, stage.sizes.payments, truth)
    project = stage.project("reprocess")
    stage.headrace("pipeline", "run", project, "--once")
    wrong = table(stage, "revenue")
    print(f"version 1 says {wrong['JP']:,.0f} yen; {truth['JP']:,} were paid")
    source = project / "transformations" / "revenue.py"
    source.write_text(source.read_text().replace(MISTAKE, FIX))
    stage.headrace("pipeline", "replay", project, "--version", "v2")
    right = table(stage, "revenue.v2")
    # The new version goes on where the replay ended; readers move over when they like.
    pay(stage, stage.sizes.payments, stage.sizes.payments // 10, truth)
    stage.headrace("pipeline", "run", project, "--version", "v2", "--once")
    tell(
        stage,
        yen_paid=truth["JP"],
        yen_in_version_1=round(wrong["JP"]),
        yen_in_version_2=round(table(stage, "revenue.v2")["JP"]),
        version_1_is_still_there=table(stage, "revenue") == wrong,
        euros_agree=round(right["DE"]) == round(wrong["DE"]),
    )


with stage("reprocess", __doc__, payments=2_000) as place:
    play(place)
