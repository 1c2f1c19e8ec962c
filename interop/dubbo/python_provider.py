"""The Python provider: `--zookeeper host:port --name N [--port P --version V --group G --token T --heartbeat MS --tag T
--direct --rest]`.

Prints `READY port` once exported and ends in good order when its standard input does, or with `--wait signal` when it is
told to: the counterpart of Java's `Provider`, with the same arguments.
"""

from __future__ import annotations

import argparse
import logging
import sys

from dubbo_model import AllTypes, Echo

from headrace.services import Bootstrap, ProtocolConfig, RegistryConfig


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--zookeeper")
    parser.add_argument("--name", default="python")
    parser.add_argument("--port", type=int, default=-1)
    parser.add_argument("--heartbeat", type=int)
    parser.add_argument("--direct", action="store_true", help="call plain functions on the event loop")
    parser.add_argument("--wait", choices=["input", "signal"], default="input")
    parser.add_argument("--rest", action="store_true", help="export over rest too")
    for option in ("--version", "--group", "--token", "--tag"):
        parser.add_argument(option)
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    address = f"zookeeper://{args.zookeeper}" if args.zookeeper else "N/A"
    dubbo = ProtocolConfig(
        name="dubbo",
        port=args.port,
        heartbeat=args.heartbeat,
        dispatcher="direct" if args.direct else None,
    )
    application = Bootstrap(
        "python-provider",
        registry=RegistryConfig(address=address),
        protocol=[ProtocolConfig(name="rest", port=-1), dubbo] if args.rest else dubbo,
    )
    for service in (AllTypes(args.name), Echo()):
        application.service(service, version=args.version, group=args.group, token=args.token, tag=args.tag)
    if args.wait == "signal":
        application.serve_forever()
        return
    with application:
        print(f"READY {application.services[0].urls[-1].port}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
