"""The files that `make test` reads are what Java says."""

from interop.kafka.golden.make import FILE, SETTINGS, settings_of_java, unpacked, written_by_java


def test_the_golden_file_is_what_java_writes():
    assert unpacked(FILE.read_bytes()) == written_by_java()


def test_the_list_of_settings_is_java_s():
    assert SETTINGS.read_text() == settings_of_java()
