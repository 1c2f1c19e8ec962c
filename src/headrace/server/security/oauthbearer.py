"""OAUTHBEARER: clients show a JWT that their identity provider has signed (RFC 7628, RFC 7519)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from headrace.clock import Clock
from headrace.server.security.jwks import KeySet, KeyUnavailable
from headrace.server.security.mechanisms import Grant, Refused, Step
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.oauthbearer import MECHANISM, UNDERSTOOD, error_answer, read_client_message

if TYPE_CHECKING:
    from collections.abc import Awaitable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a private key. `none` and those with a shared secret are not taken."""

_CLOCKS = (
    "compare the clocks of this machine and the identity provider's, or raise "
    "sasl.oauthbearer.clock.skew.seconds"
)


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say; None or empty where the operator does not ask."""

    issuer: str | None
    audiences: tuple[str, ...]
    user_claim: str
    scope_claim: str
    skew_seconds: int


class TokenProblem(Exception):
    """Why a token is not taken, and what to do about it."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


class TokenValidator:
    def __init__(self, keys: KeySet, rules: TokenRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock

    async def validate(self, token: str) -> Grant:
        """Whom the token is about, and until when; TokenProblem when it is not good."""
        claims = await self._verified(token)
        rules = self._rules
        expires = self._check_times(claims)
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise TokenProblem(
                f"the token is from issuer {_shown(claims.get('iss'))}, not from {rules.issuer!r}",
                "correct sasl.oauthbearer.expected.issuer, or let the client ask its own identity provider",
            )
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if rules.audiences and not set(rules.audiences).intersection(map(str, named)):
            raise TokenProblem(
                f"the token is for audience {_shown(audience)}, not for {', '.join(rules.audiences)}",
                "correct sasl.oauthbearer.expected.audience, or the audience that the client asks for",
            )
        scope = claims.get(rules.scope_claim, "")
        if not isinstance(scope, str | list):
            raise TokenProblem(
                f"the claim {rules.scope_claim!r} of the token is neither text nor a list",
                "correct sasl.oauthbearer.scope.claim.name",
            )
        user = claims.get(rules.user_claim)
        if not isinstance(user, str) or not user.strip():
            raise TokenProblem(
                f"the token has no claim {rules.user_claim!r} to take the user from",
                "set sasl.oauthbearer.sub.claim.name to a claim that the identity provider writes",
            )
        return Grant(user, MECHANISM, expires_ms=int(expires * 1000))

    async def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise TokenProblem(
                "what it sent is no JWT", "let the client ask for a signed access token"
            ) from None
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise TokenProblem(
                f"the token's algorithm is {_shown(algorithm)}, which proves nothing to this broker",
                f"let the identity provider sign with one of {', '.join(ALGORITHMS)}",
            )
        key_id = header.get("kid")
        try:
            key = await self._keys.key(key_id if isinstance(key_id, str) else None)
        except KeyUnavailable as error:
            raise TokenProblem(str(error), "check sasl.oauthbearer.jwks.endpoint.url") from None
        try:
            # Times, issuer and audience are checked above, by this broker's clock and with sentences.
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_aud": False,
                    "verify_iss": False,
                    "verify_sub": False,
                    "verify_jti": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise TokenProblem(
                "the token's signature is wrong",
                "let the client ask for a new token; if that fails as well, check "
                "that sasl.oauthbearer.jwks.endpoint.url has the keys of its identity provider",
            ) from None
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> float:
        """When it expires."""
        now, skew = self._clock.now_ms() / 1000, self._rules.skew_seconds
        expires, issued, begins = (_time(claims, name) for name in ("exp", "iat", "nbf"))
        if expires is None or issued is None:
            missing = "exp" if expires is None else "iat"
            raise TokenProblem(f"the token has no claim {missing!r}", "let the identity provider write it")
        if now > expires + skew:
            raise TokenProblem(
                f"the token expired {now - expires:.0f} s ago",
                f"let the client ask for a new one; if it has just done so, {_CLOCKS}",
            )
        for name, time in (("issued", issued), ("valid", begins)):
            if time is not None and time > now + skew:
                raise TokenProblem(f"the token is {name} only in {time - now:.0f} s from now", _CLOCKS)
        return expires


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    return repr(value)[:100]


class OAuthBearer:
    """The mechanism."""

    def __init__(self, validator: TokenValidator) -> None:
        self.validator = validator

    def begin(self) -> OAuthBearerLogin:
        return OAuthBearerLogin(self.validator)


class OAuthBearerLogin:
    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._refusal: Refused | None = None
        self.user = ""

    def take(self, token: bytes) -> Awaitable[Step]:
        if self._refusal is not None:
            if token == UNDERSTOOD:
                raise self._refusal
            self._refusal = None
        try:
            message = read_client_message(token)
        except SaslError as error:
            raise Refused(f"its message cannot be used ({error})") from None
        return self._judge(message.token, message.acts_as)

    async def _judge(self, token: str, acts_as: str) -> Step:
        try:
            grant = await self._validator.validate(token)
        except TokenProblem as problem:
            answer = error_answer("invalid_token")
            self._refusal = Refused(str(problem), told=answer, remedy=problem.remedy)
            return Step(answer.encode())
        self.user = grant.user
        if acts_as not in ("", grant.user):
            raise Refused(
                f"it wants to act as {acts_as!r}",
                told=f"Authentication failed: Client requested an authorization id ({acts_as}) that is different from "
                f"the token's principal name ({grant.user})",
            )
        return Step(b"", grant)
