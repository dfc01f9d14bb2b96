"""What each tenant may ask for a minute: requests, and tokens of prompts and answers."""

from collections.abc import Mapping

from radixgate.clock import Clock
from radixgate.errors import TooManyRequests
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.settings.keys_file import TenantLimits
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.proto.blocks import BYTES_A_TOKEN


class Bucket:
    """Fills by its rate up to a minute's worth. It may be overdrawn, and then must fill again."""

    __slots__ = ("_at", "_level", "_most", "_per_s")

    def __init__(self, per_minute: float, now: float) -> None:
        self._most = per_minute
        self._per_s = per_minute / 60.0
        self._level = per_minute
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """0 if it was taken, else the seconds until it can be. More than the bucket holds is taken
        of a full one, which is then overdrawn."""
        level = self._level + (now - self._at) * self._per_s
        self._at = now
        if level > self._most:
            level = self._most
        wanted = amount if amount < self._most else self._most
        if level < wanted:
            self._level = level
            return (wanted - level) / self._per_s
        self._level = level - amount
        return 0.0

    def resize(self, per_minute: float, now: float) -> None:
        """Fill at this rate from now on; what is in it stays, up to the new minute's worth."""
        self._level = min(self._level + (now - self._at) * self._per_s, self._most)
        self._at = now
        self._most = per_minute
        self._per_s = per_minute / 60.0

    def give(self, amount: float) -> None:
        """Back; what is negative is taken though it may not be there."""
        self._level += amount


class RateLimits:
    """The buckets of all tenants; as many as the keys file has, and one for who has none."""

    def __init__(
        self,
        limits: LimitsConfig,
        own: Mapping[str, TenantLimits],
        clock: Clock,
        before: "RateLimits | None" = None,
    ) -> None:
        """`own`: by tenant, what goes before the flags. `before`: what held until now; its buckets
        go on as full as they are, so that a change of settings grants nothing."""
        now = clock.now()
        self._requests: dict[str | None, Bucket] = {}
        self._tokens: dict[str | None, Bucket] = {}
        for tenant in (None, *own):
            mine = TenantLimits() if tenant is None else own[tenant]
            requests = mine.requests_per_minute or limits.tenant_requests_per_minute
            tokens = mine.tokens_per_minute or limits.tenant_tokens_per_minute
            if requests is not None:
                known = None if before is None else before._requests.get(tenant)
                self._requests[tenant] = _bucket(known, requests, now)
            if tokens is not None:
                known = None if before is None else before._tokens.get(tenant)
                self._tokens[tenant] = _bucket(known, tokens, now)

    @property
    def any(self) -> bool:
        """Some tenant is limited."""
        return bool(self._requests or self._tokens)

    def take(self, tenant: str | None, body_bytes: int, now: float) -> float:
        """Enter a request; the tokens charged for its prompt until `settle` knows better.

        Raises TooManyRequests with the time after which it is worth another try. About 1 us.
        """
        requests, tokens = self._requests.get(tenant), self._tokens.get(tenant)
        if requests is not None:
            wait_s = requests.take(1.0, now)
            if wait_s:
                raise _over("requests", wait_s)
        if tokens is None:
            return 0.0
        guess = body_bytes / BYTES_A_TOKEN
        wait_s = tokens.take(guess, now)
        if not wait_s:
            return guess
        if requests is not None:
            requests.give(1.0)
        raise _over("tokens", wait_s)

    def settle(self, tenant: str | None, charged: float, counts: AnswerCounts | None) -> None:
        """The request is over. Without counts what was charged for its prompt stands."""
        tokens = self._tokens.get(tenant)
        if tokens is None or counts is None:
            return
        prompt = charged if counts.prompt is None else counts.prompt
        tokens.give(charged - prompt - (counts.completion or 0))


def _bucket(known: Bucket | None, per_minute: float, now: float) -> Bucket:
    if known is None:
        return Bucket(per_minute, now)
    known.resize(per_minute, now)
    return known


def _over(what: str, wait_s: float) -> TooManyRequests:
    return TooManyRequests(
        f"the limit of {what} a minute is reached; try again in {wait_s:.1f} s",
        retry_after_s=wait_s,
    )
