"""`python -m interop.kafka.golden` writes tests/wire/golden.txt.xz: what Java writes for every version of every message; and
tools/kafka_settings.tsv: every setting of Kafka's brokers, topics and groups.

To be run after `python -m tools.generate_messages` took a new version of Kafka; `make interop` compares the file with Java's bytes.
"""

from interop.kafka.golden.make import FILE, SETTINGS, packed, settings_of_java, written_by_java


def main() -> None:
    FILE.write_bytes(packed(written_by_java()))
    SETTINGS.write_text(settings_of_java())
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
