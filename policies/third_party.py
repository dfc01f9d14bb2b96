"""Policies that other packages bring, by the entry point group `radixgate.policies`."""

import copy
import random
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from radixgate.clock import Clock
from radixgate.errors import ConfigError, RadixgateError
from radixgate.policies.base import Candidates, Choice, Policy, RouteRequest
from radixgate.policies.rehearsal import understudy

GROUP = "radixgate.policies"
# What may stand in a header, a label and a command line.
_FIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
# Reasons are labels of a metric; a policy that has more of them counts the rest under one.
MOST_REASONS = 32
OTHER_REASON = "other"
_ASKED = RouteRequest(prompt_tokens=100)  # at the start

Maker = Callable[[Clock, random.Random], Policy]


def offered_names() -> Sequence[str]:
    """Names that installed packages bring, each once. Reads their metadata: some milliseconds."""
    return sorted({one.name for one in entry_points(group=GROUP) if _FIT.fullmatch(one.name)})


def third_party(name: str, clock: Clock, rng: random.Random) -> Policy | None:
    """The policy of this name, as its maker `(clock, rng) -> policy` makes it; None: nobody has it.

    Raises ConfigError, naming the package, if it cannot be loaded, made, copied, does not choose
    among two workers, or changes a column; or if two packages have the name.
    """
    if not _FIT.fullmatch(name):
        return None
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        return None
    packages = sorted({_package(one) for one in found})
    if len(packages) > 1:
        raise ConfigError(f"several packages bring a policy {name!r}: {', '.join(packages)}")
    where = f"the policy {name!r} of {packages[0]} ({found[0].value})"
    try:
        make: Maker = found[0].load()
    except Exception as exc:  # whatever an import raises
        raise ConfigError(f"{where} cannot be loaded: {_said(exc)}") from exc
    try:
        policy = Checked(name, make(clock, rng))
    except Exception as exc:
        raise ConfigError(f"{where} cannot be made by (clock, rng): {_said(exc)}") from exc
    _try_out(policy, where)
    return policy


class Checked:
    """A policy whose choices are looked at before anybody acts on them."""

    def __init__(self, name: str, policy: Policy) -> None:
        self._name = name
        self._policy = policy
        self._reasons: set[str] = set()

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """As the policy's own. Raises RadixgateError for a choice of nobody."""
        choice = self._policy.choose(request, candidates)
        if not 0 <= choice.index < len(candidates):
            raise RadixgateError(
                f"the policy {self._name!r} chose candidate {choice.index} of {len(candidates)}"
            )
        reasons, branch = self._reasons, choice.branch
        if branch in reasons:
            return choice
        if len(reasons) < MOST_REASONS:
            reasons.add(branch)
            return choice
        return Choice(choice.index, OTHER_REASON, choice.explain)


def _try_out(policy: Policy, where: str) -> None:
    """Ask copies of it, which see two idle workers and two that have reported."""
    tried = (("idle workers", _two_idle()), ("workers that have reported", _two_told()))
    for said, candidates in tried:
        before = copy.deepcopy(_columns(candidates))
        try:
            understudy(policy, random.Random(0)).choose(_ASKED, candidates)
        except Exception as exc:
            raise ConfigError(f"{where} does not choose among two {said}: {_said(exc)}") from exc
        for column, values in _columns(candidates).items():
            if values != before[column]:
                raise ConfigError(
                    f"{where} changes a column that it is given, which others read too: {column}"
                )


def _two_idle() -> Candidates:
    nothing = (None, None)
    return Candidates(
        ids=("one", "two"),
        requests_in_flight=(0, 0),
        uncached_tokens_in_flight=(0, 0),
        running=nothing,
        waiting=nothing,
        queued_uncached_tokens=nothing,
        queued_elsewhere=nothing,
        kv_share_used=nothing,
        prefill_tokens_per_s=nothing,
        read_cached_tokens=lambda: (0, 0),
    )


def _two_told() -> Candidates:
    """Lists, as a fleet gives them, that are other ones when sorted or turned round."""
    cached, steps = [160, 80], [0.02, 0.01]
    return Candidates(
        ids=["two", "one"],
        requests_in_flight=[2, 1],
        uncached_tokens_in_flight=[200, 100],
        running=[2, 1],
        waiting=[2, 1],
        queued_uncached_tokens=[400, 200],
        queued_elsewhere=[200, 100],
        kv_share_used=[0.5, 0.25],
        prefill_tokens_per_s=[20_000.0, 10_000.0],
        read_cached_tokens=lambda: cached,
        read_decode_step_s=lambda: steps,
        reported_requests=[4, 2],
        requests_there=[4, 2],
        most_kv_share=0.5,
    )


def _columns(candidates: Candidates) -> Mapping[str, Sequence[object]]:
    """By what a policy calls them. Without `read_recent_share`, which is asked one by one."""
    return {
        "ids": candidates.ids,
        "requests_in_flight": candidates.requests_in_flight,
        "uncached_tokens_in_flight": candidates.uncached_tokens_in_flight,
        "running": candidates.running,
        "waiting": candidates.waiting,
        "queued_uncached_tokens": candidates.queued_uncached_tokens,
        "queued_elsewhere": candidates.queued_elsewhere,
        "kv_share_used": candidates.kv_share_used,
        "prefill_tokens_per_s": candidates.prefill_tokens_per_s,
        "reported_requests": candidates.reported_requests,
        "requests_there": candidates.requests_there,
        "read_cached_tokens()": candidates.read_cached_tokens(),
        "read_decode_step_s()": candidates.read_decode_step_s(),
    }


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed package"


def _said(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}"
