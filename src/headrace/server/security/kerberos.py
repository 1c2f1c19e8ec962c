"""GSSAPI: clients show a Kerberos ticket for this broker, which its keytab can open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from concurrent.futures import Executor
from pathlib import Path

import gssapi
from gssapi.exceptions import GSSError

from headrace.link.jaas import JaasEntry
from headrace.link.kerberos import KerberosContext
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.kerberos_rules import KerberosRules
from headrace.server.security.mechanism_names import GSSAPI
from headrace.server.security.mechanisms import Grant, Refused, Step
from headrace.server.security.principal_rules import NoRule
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.gssapi import server_exchange


class Kerberos:
    """The mechanism, with the keytab of one listener."""

    def __init__(self, credentials: gssapi.Credentials, rules: KerberosRules, threads: Executor) -> None:
        self.credentials = credentials
        self.rules = rules
        self.threads = threads

    def begin(self) -> KerberosExchange:
        return KerberosExchange(self)


def kerberos_of(listener: str, config: BrokerConfig, entry: JaasEntry | None, threads: Executor) -> Kerberos:
    """ConfigError where no ticket could be opened."""
    options = entry.options if entry is not None else {}
    keytab, principal = options.get("keyTab", ""), options.get("principal", "")
    if not keytab or not principal:
        raise ConfigError(
            f"Listener {listener} offers GSSAPI but has no keytab: set listener.name.{listener.lower()}.gssapi.sasl.jaas.config="
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="/path/kafka.keytab" '
            'principal="kafka/host@REALM"; or set sasl.enabled.mechanisms to another mechanism.'
        )
    service = config.string("sasl.kerberos.service.name") or options.get("serviceName")
    if service and principal.partition("/")[0] != service:
        raise ConfigError(
            f"Listener {listener}: sasl.kerberos.service.name is {service}, but the principal is {principal}; make them agree."
        )
    if not Path(keytab).is_file():
        raise ConfigError(f"Listener {listener}: the keytab {keytab} is not there or no file.")
    try:
        rules = KerberosRules.of(
            config.list("sasl.kerberos.principal.to.local.rules"), principal.rpartition("@")[2]
        )
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(name=name, usage="accept", store={"keytab": f"FILE:{keytab}"})
    except ValueError as error:
        raise ConfigError(f"sasl.kerberos.principal.to.local.rules: {error}.") from None
    except GSSError as error:
        raise ConfigError(
            f"Listener {listener}: the keytab {keytab} has no key for {principal} ({error}); make it with ktadd."
        ) from None
    return Kerberos(credentials, rules, threads)


class KerberosExchange:
    def __init__(self, kerberos: Kerberos) -> None:
        self._kerberos = kerberos
        self._context: gssapi.SecurityContext | None = None
        self._steps: Generator[bytes, bytes] | None = None
        self.user = ""

    def take(self, token: bytes) -> Awaitable[Step]:
        # The library reads the keytab and keeps a file of tickets it has seen.
        return asyncio.get_running_loop().run_in_executor(self._kerberos.threads, self._take, token)

    def _take(self, token: bytes) -> Step:
        try:
            if self._steps is None:
                self._context = gssapi.SecurityContext(creds=self._kerberos.credentials, usage="accept")
                self._steps = server_exchange(KerberosContext(self._context))
                next(self._steps)
            return Step(self._steps.send(token))
        except StopIteration:
            return Step(b"", self._grant())
        except GSSError as error:
            raise Refused(
                f"Kerberos says: {error}",
                remedy="check the client's ticket (klist), that it asks for this broker's principal, and the clocks",
            ) from None
        except SaslError as error:
            raise Refused(str(error)) from None

    def _grant(self) -> Grant:
        """The user is whom the ticket names; whom else the client would like to be does not count, as in Kafka."""
        assert self._context is not None
        principal = str(self._context.initiator_name)
        self.user = principal
        try:
            return Grant(self._kerberos.rules.short_name(principal), GSSAPI)
        except NoRule as error:
            raise Refused(str(error), remedy="add a rule to sasl.kerberos.principal.to.local.rules") from None
