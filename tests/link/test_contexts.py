"""Named clusters are kept in a file of the user's alone, and a file that was edited by hand is read with care."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest

from headrace.link.contexts import (
    HIDDEN,
    Context,
    Contexts,
    ContextServers,
    changing,
    contexts_file,
    load,
    properties_of,
)
from headrace.link.errors import SettingsError

PROD = Context(
    "prod", {"bootstrap.servers": "h:9093", "security.protocol": "SASL_SSL", "sasl.password": "s3cret"}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "headrace" / "contexts.toml"


def test_what_is_written_is_read_again(file: Path) -> None:
    odd = Context(
        "odd.name-1", {"bootstrap.servers": "[::1]:1", "key=with space": 'a "quoted"\n\\ \x7f\x01 ü 🎈 value'}
    )
    with changing(file) as contexts:
        contexts.add(PROD)
        contexts.add(odd)
        contexts.use("prod")
    found = load(file)
    assert list(found.by_name.values()) == [PROD, odd]
    assert found.in_use() == PROD


def test_the_file_is_the_users_alone_whatever_it_was_before(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("")
    file.chmod(0o644)
    with changing(file) as contexts:
        contexts.add(PROD)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def _use_and_add_again(file: Path) -> None:
    with changing(file) as contexts:
        contexts.use("prod")
        contexts.add(PROD)


def test_an_error_leaves_the_file_as_it_was(file: Path) -> None:
    with changing(file) as contexts:
        contexts.add(PROD)
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="There is a context 'prod' already"):
        _use_and_add_again(file)
    assert file.read_bytes() == before


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "kept-elsewhere.toml")
    with changing(file) as contexts:
        contexts.add(PROD)
    assert file.is_symlink()
    assert load(file).by_name == {"prod": PROD}


def _add(file: Path, number: int) -> None:
    with changing(file) as contexts:
        contexts.add(Context(f"c{number}", {"bootstrap.servers": "h:1"}))


def test_changes_at_the_same_time_are_all_kept(file: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_add, args=(file, number)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert sorted(load(file).by_name) == [f"c{number}" for number in range(6)]


def test_secrets_are_hidden() -> None:
    secrets = ("sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "ssl.key.pem",
               "sasl.oauthbearer.client.secret", "sasl.oauthbearer.assertion.private.key.passphrase")  # fmt: skip
    plain = {
        "bootstrap.servers": "h:1",
        "ssl.key.location": "/k.pem",
        "ssl.ca.pem": "CA",
        "sasl.username": "ann",
    }
    shown = Context("c", {**plain, **dict.fromkeys(secrets, "hush"), "ssl.truststore.password": ""}).shown
    assert shown == {**plain, **dict.fromkeys(secrets, HIDDEN), "ssl.truststore.password": ""}
    assert "s3cret" not in repr(PROD)


def test_servers_of_a_context_bring_its_settings_along() -> None:
    servers = ContextServers.of(PROD)
    assert servers == "h:9093"
    assert properties_of(servers) == {"security.protocol": "SASL_SSL", "sasl.password": "s3cret"}
    assert properties_of("h:9093") == properties_of(None) == {}


def test_renaming_keeps_the_order_and_what_is_in_use() -> None:
    other = Context("other", PROD.properties)
    contexts = Contexts({"prod": PROD, "other": other}, "prod")
    contexts.rename("prod", "production")
    assert list(contexts.by_name) == ["production", "other"]
    assert contexts.current == "production"
    contexts.remove("production")
    assert contexts.current is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("current = ", "is not TOML: .*; correct or remove it"),
        ("[contexts.prod]\n'security.protocol' = 'SSL'\n", 'the context prod has no "bootstrap.servers"'),
        ("[contexts.prod]\n'bootstrap.servers' = 9092\n", "the context prod holds something else than text"),
        ("contexts = 'prod'\n", "contexts is not a table"),
    ],
)
def test_a_file_edited_badly_is_answered_with_one_sentence(file: Path, text: str, sentence: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(SettingsError, match=sentence) as refused:
        load(file)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_file_lies_where_the_desktops_standard_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert contexts_file() == tmp_path / ".config" / "headrace" / "contexts.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "x"))
    assert contexts_file() == tmp_path / "x" / "headrace" / "contexts.toml"
