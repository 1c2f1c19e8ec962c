"""The golden file that `make test` reads is what Java writes."""

from interop.kafka.golden.make import FILE, unpacked, written_by_java


def test_the_golden_file_is_what_java_writes():
    assert unpacked(FILE.read_bytes()) == written_by_java()
