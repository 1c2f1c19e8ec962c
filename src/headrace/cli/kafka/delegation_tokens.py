"""kafka-delegation-tokens.sh"""

from __future__ import annotations

import base64
import binascii
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.client.administration.tokens import Principal, Token

_ACTIONS = ("create", "renew", "expire", "describe")
_COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def run(arguments: list[str]) -> int:
    parser = KafkaParser("delegation-tokens", "Create, renew, expire and describe delegation tokens.")
    parser.bootstrap()
    parser.command_config()
    parser.switch("--create", help="Create a token. Name renewers with --renewer-principal.")
    parser.switch("--renew", help="Renew a token. Give the period with --renew-time-period.")
    parser.switch("--expire", help="Expire a token. Give the period with --expiry-time-period.")
    parser.switch("--describe", help="Describe the tokens of owners, named with --owner-principal, or all.")
    parser.flag("--owner-principal", action="append", default=[], help="An owner, as User:name.")
    parser.flag("--renewer-principal", action="append", default=[], help="A renewer, as User:name.")
    parser.flag("--max-life-time-period", type=int, metavar="MS", help="The longest life of the token; -1 for the brokers' setting.")  # fmt: skip
    parser.flag(
        "--renew-time-period", type=int, metavar="MS", help="For how long; -1 for the brokers' setting."
    )
    parser.flag("--expiry-time-period", type=int, metavar="MS", help="After how long; -1 for at once.")
    parser.flag("--hmac", help="The HMAC of the token, in base64.")
    options = parser.parse(arguments)
    if sum(getattr(options, action) for action in _ACTIONS) != 1:
        parser.error("Command must include exactly one action: --create, --renew, --expire or --describe")
    if options.command_config is None:
        parser.error("Missing required argument: --command-config, with the login that tokens need")
    try:
        _check(parser, options)

        from headrace.cli.cluster.connection import connect

        _act(connect(options.bootstrap_server, options.command_config), options)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _check(parser: KafkaParser, options: Namespace) -> None:
    needed = {
        "create": ("max_life_time_period",),
        "renew": ("hmac", "renew_time_period"),
        "expire": ("hmac", "expiry_time_period"),
    }
    for action, names in needed.items():
        if getattr(options, action):
            for name in names:
                if getattr(options, name) is None:
                    parser.error(f"Missing required argument: --{name.replace('_', '-')}")


def _act(cluster: Cluster, options: Namespace) -> None:
    from headrace.client.administration import tokens

    owners = [_principal(text) for text in options.owner_principal]
    if options.create:
        renewers = [_principal(text) for text in options.renewer_principal]
        print("Calling create token operation with renewers :", *map(_shown, renewers))
        made = cluster.call(
            tokens.create, renewers, options.max_life_time_period, owners[0] if owners else None
        )
        print(f"Created delegation token with tokenId : {made.id}")
        _print([made])
    elif options.renew:
        expires = cluster.call(tokens.renew, _hmac(options), options.renew_time_period)
        print(f"Completed renew operation. New expiry date : {_date(expires)}")
    elif options.expire:
        expires = cluster.call(tokens.expire, _hmac(options), options.expiry_time_period)
        print(f"Completed expire operation. New expiry date : {_date(expires)}")
    else:
        found = cluster.call(tokens.describe, owners or None)
        print(f"Total number of tokens : {len(found)}")
        _print(found)


def _principal(text: str) -> Principal:
    kind, colon, name = text.strip().partition(":")
    if not colon or not kind or not name:
        raise Failure(f"A principal looks like User:alice, not '{text}'")
    return kind, name


def _hmac(options: Namespace) -> bytes:
    try:
        return base64.b64decode(options.hmac, validate=True)
    except (ValueError, binascii.Error):
        raise Failure("--hmac is not base64; take it from --describe") from None


def _print(found: list[Token]) -> None:
    form = "\n%-15s %-30s %-15s %-15s %-25s %-15s %-15s %-15s"
    print(form % _COLUMNS, end="")
    for token in found:
        renewers = f"[{', '.join(map(_shown, token.renewers))}]"
        dates = (_date(token.issued_ms), _date(token.expires_ms), _date(token.max_ms))
        secret = base64.b64encode(token.hmac).decode()
        print(
            form % (token.id, secret, _shown(token.owner), _shown(token.requester), renewers, *dates), end=""
        )
    print()


def _shown(principal: Principal) -> str:
    return ":".join(principal)


def _date(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(ms / 1000))
