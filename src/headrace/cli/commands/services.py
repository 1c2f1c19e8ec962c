"""`headrace services`: look into a registry, call a service, export one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli import options
from headrace.cli.commands import service_call
from headrace.cli.failure import Failure, Misuse, did_you_mean
from headrace.cli.parsing import properties
from headrace.cli.view import output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.services import Runtime
    from headrace.services.catalogue import ServiceEntry

app = options.command_app("List, describe, invoke and export services (Dubbo 2.7).")

QUICK = {"dubbo.service.shutdown.wait": "0"}  # a command that only calls has no clients to wait for
DEFAULT_REGISTRY = "zookeeper://127.0.0.1:2181"

Registry = Annotated[
    str,
    typer.Option(
        "--registry",
        "-r",
        metavar="URL",
        envvar="HEADRACE_REGISTRY",
        help="zookeeper://HOST:PORT, embedded://, embedded:///DIR, or N/A for none.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="KEY=VALUE", help="A property such as dubbo.protocol.port; may be repeated."),
]
Group = Annotated[str | None, typer.Option(help="The service's group.")]
Version = Annotated[str | None, typer.Option(help="The service's version.")]


@app.command(
    "list", epilog=options.examples("headrace services list", "headrace services list -r embedded://")
)
def list_(registry: Registry = DEFAULT_REGISTRY, json: options.Json = False) -> None:
    """List the services a registry knows."""
    from headrace.services.catalogue import Catalogue

    with _runtime(QUICK) as runtime:
        entries = Catalogue(runtime, _registry(registry)).services()
        if json:
            output.json_document([_as_json(entry) for entry in entries])
            return
        rows = [
            (e.key, len(e.urls["providers"]), len(e.urls["consumers"]), ",".join(e.protocols) or None)
            for e in entries
        ]
        if rows:
            output.table(("SERVICE", "PROVIDERS", "CONSUMERS", "PROTOCOLS"), rows)
        else:
            output.note(f"{registry} knows no services; 'headrace services export MODULE:CLASS' adds one.")


@app.command(epilog=options.examples("headrace services describe com.acme.OrderService"))
def describe(
    interface: Annotated[str, typer.Argument(metavar="INTERFACE")],
    registry: Registry = DEFAULT_REGISTRY,
    json: options.Json = False,
) -> None:
    """Show a service's providers, consumers, methods and rules."""
    from headrace.services.catalogue import Catalogue

    with _runtime(QUICK) as runtime:
        catalogue = Catalogue(runtime, _registry(registry))
        entries = catalogue.services(interface)
        if not entries:
            known = {entry.interface for entry in catalogue.services()}
            raise Failure(f"The registry knows no service '{interface}'.{did_you_mean(interface, known)}")
        described = {entry.key: catalogue.description(entry) for entry in entries}
        if json:
            output.json_document([{**_as_json(e), "description": described[e.key]} for e in entries])
            return
        for number, entry in enumerate(entries):
            print(("\n" if number else "") + f"Service {entry.key}")
            for signature in _signatures(entry, described[entry.key]):
                print(f"  {signature}")
            _print_providers(entry)
            for url in entry.urls["consumers"]:
                print(f"  consumer {url.host} {url.get('application', '-')} (pid {url.get('pid', '-')})")
            for url in [*entry.urls["configurators"], *entry.urls["routers"]]:
                print(f"  rule     {url.full}")


@app.command(
    epilog=options.examples(
        """headrace services invoke com.acme.OrderService findOrder '"A-17"'""",
        """headrace services invoke com.acme.OrderService place '{"id": 1}' --types com.acme.Order""",
        """headrace services invoke com.acme.Echo echo '"hi"' --url dubbo://127.0.0.1:20880""",
    )
)
def invoke(
    interface: Annotated[str, typer.Argument(metavar="INTERFACE")],
    method: Annotated[str, typer.Argument(metavar="METHOD")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="JSON…", help="The arguments, each as JSON.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Call this provider, not the registry's.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(metavar="TYPE,…", help="The Java types of the arguments, where names are overloaded."),
    ] = None,
    group: Group = None,
    version: Version = None,
    token: Annotated[str | None, typer.Option(help="The token, when calling past the registry.")] = None,
    timeout: Annotated[int, typer.Option(min=1, metavar="MS", help="How long to wait.")] = 5000,
    attachment: Annotated[
        list[str] | None, typer.Option("--attachment", "-a", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Refuse what the service's description or its classes do not have."
        ),
    ] = True,
    registry: Registry = DEFAULT_REGISTRY,
) -> None:
    """Call a method without having the interface; prints the result as JSON."""
    from headrace.services import Bootstrap, ReferenceConfig, RegistryConfig, attach
    from headrace.services.catalogue import Catalogue
    from headrace.services.field_names import STRICT
    from headrace.services.generic import GenericService
    from headrace.services.protocols.rest.json_values import dumps

    values = [_json_argument(text) for text in arguments or []]
    attachments = dict(properties.from_arguments(attachment or [], "--attachment"))
    if token is not None:
        attachments["token"] = token
    names = [name.strip() for name in types.split(",")] if types else None
    if names is not None and len(names) != len(values):
        raise Misuse(f"--types names {len(names)} types, but {len(values)} arguments are given.")
    with _runtime(QUICK) as runtime:
        given = None if url else RegistryConfig(address=_registry(registry))
        if check and not url:
            names = service_call.check_call(
                Catalogue(runtime, registry),
                interface,
                method,
                values,
                types=names,
                group=group,
                version=version,
            )
        if not check:
            attachments[STRICT] = "false"
        application = Bootstrap("headrace-cli", registry=given, runtime=runtime)
        reference: ReferenceConfig[Any] = ReferenceConfig(
            interface=interface,
            generic=True,
            url=url,
            group=group,
            version=version,
            timeout=timeout,
            retries=0,
            runtime=application.runtime,
        )
        proxy: GenericService = reference.get()
        with attach(attachments):
            answer = proxy.invoke(method, names, values)
        print(dumps(answer).decode())


@app.command(
    epilog=options.examples(
        "headrace services export shop.services:OrderService",
        "headrace services export shop.services:OrderService -r N/A -D dubbo.protocol.port=20881",
        "headrace services export shop.services:OrderService --metrics 127.0.0.1:9465",
        "headrace services export headrace.services.administration:Administration",
    )
)
def export(
    targets: Annotated[list[str], typer.Argument(metavar="MODULE:CLASS…")],
    application: Annotated[str, typer.Option(help="The application's name.")] = "headrace",
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", "-p", metavar="NAME[:PORT]", help="May be repeated. [dubbo]"),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on. [all]")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve metrics of the services for Prometheus there."),
    ] = None,
    registry: Registry = DEFAULT_REGISTRY,
    define: Properties = None,
) -> None:
    """Export services and serve them until Ctrl-C or SIGTERM."""
    import logging
    import sys

    from headrace.services import Bootstrap, RegistryConfig

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    overrides = dict(properties.from_arguments(define or [], "-D"))
    with _runtime(overrides) as runtime:
        served = Bootstrap(
            application,
            registry=RegistryConfig(address=registry),
            protocol=[_protocol(text, host) for text in protocol or ["dubbo"]],
            metrics=metrics,
            runtime=runtime,
        )
        for target in targets:
            served.service(_load(target))
        served.serve_forever()


# -- helpers -------------------------------------------------------------------------------------------------


@contextmanager
def _runtime(overrides: dict[str, str]) -> Iterator[Runtime]:
    """A runtime for one command, ended with it; what goes wrong becomes the command's one sentence."""
    import logging

    from headrace.services import Environment, JavaException, RpcException, Runtime, ServicesError

    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # the registry says in a sentence what kazoo met
    runtime = Runtime(Environment(properties=overrides))
    try:
        yield runtime
    except JavaException as error:
        raise Failure(f"The service raised {error}.") from None
    except RpcException as error:
        raise Failure(f"The call failed: {service_call.plain_reason(error.reason)}.") from None
    except ServicesError as error:
        raise Failure(str(error)) from None
    finally:
        runtime.shutdown()


def _registry(text: str) -> str:
    if text.upper() == "N/A":
        raise Misuse("There is no registry to ask: give --registry, or --url to call a provider directly.")
    return text


def _protocol(text: str, host: str | None) -> Any:
    from headrace.services import ProtocolConfig

    name, _, port = text.partition(":")
    if port and not port.lstrip("-").isdecimal():
        raise Misuse(f"--protocol takes NAME or NAME:PORT, such as dubbo:20880, not '{text}'.")
    return ProtocolConfig(name=name, host=host, port=int(port) if port else None)


def _load(target: str) -> Any:
    """The class (or instance) a user names as module:Class."""
    import importlib
    import os
    import sys

    module_name, separator, attribute = target.partition(":")
    if not separator or not module_name or not attribute:
        raise Misuse(f"Name what to export as module:Class, not '{target}'.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise Failure(
                f"The module '{module_name}' needs '{error.name}', which is not installed."
            ) from None
        raise Failure(f"There is no module '{module_name}' here: check the name and the directory.") from None
    except Exception as error:
        raise Failure(
            f"The module '{module_name}' cannot be imported: {type(error).__name__}: {error}."
        ) from None
    found = getattr(module, attribute, None)
    if found is None:
        raise Failure(
            f"The module '{module_name}' has no '{attribute}'.{did_you_mean(attribute, vars(module))}"
        )
    return found


def _json_argument(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        raise Misuse(f"The argument {text} is not JSON; text needs quotes: '\"{text}\"'.") from None


def _as_json(entry: ServiceEntry) -> dict[str, Any]:
    return {
        "service": entry.key,
        "interface": entry.interface,
        "group": entry.group or None,
        "version": entry.version or None,
        "methods": entry.methods,
        **{category: [url.full for url in urls] for category, urls in entry.urls.items()},
    }


def _signatures(entry: ServiceEntry, described: dict[str, Any] | None) -> list[str]:
    if described is None:
        return [f"{name}(…)" for name in entry.methods]
    return [
        f"{method['returnType']} {method['name']}({', '.join(method['parameterTypes'])})"
        for method in described.get("methods", [])
    ]


def _print_providers(entry: ServiceEntry) -> None:
    shown = ("weight", "timeout", "retries", "loadbalance", "token", "dynamic", "deprecated")
    for url in entry.urls["providers"]:
        settings = " ".join(f"{key}={url.get(key)}" for key in shown if url.get(key))
        print(f"  provider {url.protocol}://{url.address} {url.get('application', '-')} {settings}".rstrip())
