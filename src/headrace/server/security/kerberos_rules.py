"""sasl.kerberos.principal.to.local.rules: from a Kerberos principal to a user's name, by the first rule that fits.

DEFAULT                                          alice@REALM and kafka/host@REALM: alice, kafka; for the broker's own realm
RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//              a principal of one part, built anew, matched, then replaced as sed does
RULE:[2:$1](nn)/L                                L and U: in small letters, in capitals
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.server.security.principal_rules import NoRule

_PRINCIPAL = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?@(?P<realm>[^/@]*)")
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<parts>\d+):(?P<form>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True)
class KerberosRules:
    realm: str
    """The one that DEFAULT is for."""
    rules: tuple[re.Match[str], ...]

    @classmethod
    def of(cls, texts: Sequence[str], realm: str) -> KerberosRules:
        """ValueError for a rule that is none."""
        rules = []
        for text in texts:
            match = _RULE.fullmatch(text.strip())
            if match is None:
                raise ValueError(
                    f"{text.strip()!r} is no rule; write DEFAULT or RULE:[n:string](regexp)s/pattern/replacement/g/L"
                )
            rules.append(match)
        return cls(realm, tuple(rules))

    def short_name(self, principal: str) -> str:
        match = _PRINCIPAL.fullmatch(principal)
        if match is None:
            if "@" in principal or not principal:
                raise NoRule(f"{principal!r} is no Kerberos principal")
            return principal
        parts = [match["realm"], match["service"], *([match["host"]] if match["host"] is not None else [])]
        for rule in self.rules:
            name = self._apply(rule, parts)
            if name is not None:
                if not name or "/" in name or "@" in name:
                    raise NoRule(f"a rule makes {name!r} of {principal}, which is no simple name")
                return name
        raise NoRule(f"no rule applies to {principal}")

    def _apply(self, rule: re.Match[str], parts: Sequence[str]) -> str | None:
        if rule["default"]:
            return parts[1] if parts[0] == self.realm else None
        if int(rule["parts"]) != len(parts) - 1:
            return None
        base = _PARAMETER.sub(lambda at: parts[int(at[1])] if int(at[1]) < len(parts) else "", rule["form"])
        if rule["match"] is not None and not re.fullmatch(rule["match"], base):
            return None
        if rule["pattern"] is not None:
            base = re.sub(rule["pattern"], rule["replacement"], base, count=0 if rule["all"] else 1)
        if rule["case"]:
            base = base.lower() if rule["case"] == "L" else base.upper()
        return base
