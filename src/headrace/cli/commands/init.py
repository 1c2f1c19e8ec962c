"""`headrace init`: a new cluster with TLS and logins, and its first administrator."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import options
from headrace.cli.commands.start import DEFAULT_DATA, DEFAULT_LISTEN
from headrace.cli.failure import Failure, Misuse
from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.cli.commands.trial_certificates import TrialCertificates

app = options.command_app("Make a cluster with logins and TLS, and its first administrator.")

DEFAULT_FILES = "conf"
_MECHANISM = "SCRAM-SHA-512"
_MECHANISMS = ("SCRAM-SHA-256", _MECHANISM)
_BROKERS = "broker"
"""The user that brokers are among themselves."""
_ITERATIONS = 4096
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@app.command(
    epilog=options.examples(
        "headrace init --admin alice",
        "headrace init --admin alice --listen 0.0.0.0:9092 --host kafka.example.com --data /var/lib/headrace",
        "headrace init --admin alice --password-file alice.secret --files /etc/headrace",
    )
)
def init(
    admin: Annotated[
        str, typer.Option(metavar="NAME", help="The first administrator, who may do everything.")
    ],
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the data will live; no cluster may be there.")
    ] = Path(DEFAULT_DATA),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the broker will listen.")
    ] = DEFAULT_LISTEN,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name or address by which clients reach the broker; may be repeated."
        ),
    ] = None,
    files: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write the settings and certificates.")
    ] = Path(DEFAULT_FILES),
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The administrator's password, on the file's first line; - for standard input. Otherwise one is made.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a new cluster that asks for TLS and a login: its first administrator, certificates for a trial, and settings
    for the broker and for clients. `headrace up` then starts it.
    """
    address = _Address(listen, host or [])
    if not admin or admin == _BROKERS or any(sign in admin for sign in '";\\\n'):
        raise Misuse(
            f"--admin takes a name without quotes or semicolons, and not '{_BROKERS}', which brokers use."
        )
    data, files = data.resolve(), files.resolve()
    written = [
        files / name for name in ("server.properties", "admin.properties", "ca.pem", "ca.key", "broker.pem")
    ]
    _refuse_what_is_there(data, written)

    from headrace.cli.parsing.password import read_password

    password = _new_password() if password_file is None else read_password(password_file, admin)
    certificates = _certificates(address.names)
    for_brokers = _new_password()
    server, client, authority, authority_key, broker = written
    files.mkdir(parents=True, exist_ok=True)
    _write(authority, certificates.authority, 0o644)
    _write(authority_key, certificates.authority_key)
    _write(broker, certificates.broker)
    _write(server, _server_settings(address, data, broker, authority, admin, for_brokers))
    _write(client, _client_settings(address, authority, admin, _quoted(password)))
    _begin(data, {admin: password, _BROKERS: for_brokers})
    if json:
        paths = {path.name: str(path) for path in written}
        output.json_document(
            {"admin": admin, "data": str(data), "bootstrap": address.bootstrap, "files": paths}
        )
        return
    print(
        f"Made a cluster in {data} with the administrator {admin}.\n\n"
        f"Start it:\n  headrace up --config {_short(server)}\n\n"
        f"Use it:\n  headrace topics list -b {address.bootstrap} --command-config {_short(client)}\n\n"
        f"The settings of clients, from {_short(client)}, which has the password:\n"
    )
    print(_client_settings(address, authority, admin, f"<the password in {_short(client)}>").rstrip())
    print(
        "\nThe certificates are for a trial: the broker's is good for a year, and ca.key can sign others for its cluster."
    )


class _Address:
    """Where the broker listens, and by which names clients know it."""

    def __init__(self, listen: str, hosts: list[str]) -> None:
        host, colon, port = listen.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise Misuse(f"--listen takes HOST:PORT, such as {DEFAULT_LISTEN}, not '{listen}'.")
        bare = host.strip("[]")
        everywhere = bare in ("", "0.0.0.0", "::")
        own = [socket.gethostname()] if everywhere else [bare]
        self.names = list(dict.fromkeys([*hosts, *own, "localhost", "127.0.0.1", "::1"]))
        self.listener = f"SASL_SSL://{host}:{port}"
        known = self.names[0] if hosts or everywhere else bare
        self.bootstrap = f"[{known}]:{port}" if ":" in known else f"{known}:{port}"
        self.advertised = f"SASL_SSL://{self.bootstrap}" if hosts or everywhere else None


def _refuse_what_is_there(data: Path, written: list[Path]) -> None:
    from headrace.server.cluster.beginning import refuse_an_old_cluster
    from headrace.server.cluster.store import StoreError

    try:
        refuse_an_old_cluster(data)
    except StoreError as error:
        raise Failure(str(error)) from None
    there = [path for path in written if path.exists()]
    if there:
        raise Failure(f"{there[0]} is there already; choose another directory with --files.")


def _certificates(names: list[str]) -> TrialCertificates:
    try:
        from headrace.cli.commands.trial_certificates import make_certificates
    except ImportError:
        raise Failure(
            "Certificates need cryptography: pip install 'headrace[security]', or make setup in a checkout."
        ) from None
    return make_certificates(names)


def _begin(data: Path, passwords: dict[str, str]) -> None:
    import asyncio

    from headrace.server.cluster.beginning import begin_cluster
    from headrace.server.cluster.store import StoreError
    from headrace.wire.sasl.scram import ScramCredential

    users = {
        (user, mechanism): ScramCredential.of_password(
            mechanism, password, secrets.token_bytes(24), _ITERATIONS
        )
        for user, password in passwords.items()
        for mechanism in _MECHANISMS
    }
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        asyncio.run(begin_cluster(data, users))
    except (StoreError, OSError) as error:
        raise Failure(f"The cluster cannot be made in {data}: {error}") from None


def _server_settings(
    address: _Address, data: Path, broker: Path, authority: Path, admin: str, for_brokers: str
) -> str:
    lines = [
        "# A broker that asks for TLS and a login (docs/security.md). It holds a password: keep it to yourself.",
        f"listeners={address.listener}",
        *([f"advertised.listeners={address.advertised}"] if address.advertised else []),
        f"log.dirs={data}",
        "",
        "inter.broker.listener.name=SASL_SSL",
        f"sasl.enabled.mechanisms={','.join(_MECHANISMS)}",
        f"sasl.mechanism.inter.broker.protocol={_MECHANISM}",
        f"listener.name.sasl_ssl.{_MECHANISM.lower()}.sasl.jaas.config={_SCRAM} required "
        f'username="{_BROKERS}" password="{for_brokers}";',
        "",
        f"ssl.keystore.location={broker}",
        f"ssl.truststore.location={authority}",
        "",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        f"super.users=User:{admin};User:{_BROKERS}",
    ]
    return "\n".join(lines) + "\n"


def _client_settings(address: _Address, authority: Path, admin: str, password: str) -> str:
    return (
        f"bootstrap.servers={address.bootstrap}\n"
        "security.protocol=SASL_SSL\n"
        f"sasl.mechanism={_MECHANISM}\n"
        f'sasl.jaas.config={_SCRAM} required username="{admin}" password="{password}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority}\n"
    )


def _new_password() -> str:
    return secrets.token_urlsafe(24)


def _quoted(password: str) -> str:
    """As a JAAS line in a properties file takes it: a backslash is one in both."""
    in_jaas = password.replace("\\", "\\\\").replace('"', '\\"')
    return in_jaas.replace("\\", "\\\\")


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    """A new file that nobody else may read, from the first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _short(path: Path) -> str:
    """Relative to here where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
