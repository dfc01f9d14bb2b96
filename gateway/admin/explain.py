"""`POST /explain`: who would get this request, and why. Nothing is sent, and nothing changes."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from aiohttp import web

from radixgate.errors import RequestError
from radixgate.fleet.fleet import Fleet, Rehearsal, WorkerState
from radixgate.gateway.admin.access import CALLER
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.asking.foreign_request import HOT_PATHS
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.proto.fields import decode_object

# By a field that only such a body has; any other needs `?path=`.
_TOLD_BY = {
    "messages": b"/v1/chat/completions",
    "prompt": b"/v1/completions",
    "text": b"/generate",
    "input_ids": b"/generate",
}


class UnknownTenant(RequestError):
    """No key is of this tenant."""

    status = 404


class ExplainRoutes:
    """The handler of `/explain`."""

    def __init__(
        self,
        choice: WorkerChoice,
        fleet: Fleet,
        asking: Asking,
        policy: Callable[[], str],
        tenants: Callable[[], Collection[str]],
    ) -> None:
        """`tenants`: those that keys are of now; empty where there are none."""
        self._choice = choice
        self._fleet = fleet
        self._asking = asking
        self._policy = policy
        self._tenants = tenants

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/explain", self.explain)]

    async def explain(self, request: web.Request) -> web.Response:
        """The body is one of a generation endpoint, which is `?path=` or else told by its fields.

        `?tenant=` explains it as that tenant's, whose cache is apart. Raises UnknownTenant, and
        what sending it would raise: RequestError, UnknownModel, NoWorkerAvailable.
        O(workers x the prompt's blocks).
        """
        data = await request.read()
        path = _path(request.query.get("path"), decode_object(data))
        caller = self._as_tenant(request[CALLER], request.query.get("tenant"))
        question = self._asking.read(path, data, caller)
        if question is None:
            question = await self._asking.read_own(path, data, caller)
        ask = question.ask
        found, left_out = self._choice.rehearse(ask)
        return json_answer(
            {
                "object": "explanation",
                "path": path.decode(),
                "model": found.model,
                "policy": self._policy(),
                "prompt_tokens": ask.prompt_tokens,
                "chosen": {"worker": found.worker_id, "reason": found.choice.branch},
                "candidates": [_row(found, index) for index in _by_score(found)],
                "left_out": self._left_out(found, left_out),
            }
        )

    def _as_tenant(self, caller: Caller, tenant: str | None) -> Caller:
        """An admin asks on behalf of the tenant: its salt is what tells where its cache is warm."""
        if tenant is None:
            return caller
        known = self._tenants()
        if known and tenant not in known:
            raise UnknownTenant(f"there is no tenant {tenant!r:.100}", param="tenant")
        return replace(caller, tenant=tenant)

    def _left_out(self, found: Rehearsal, reasons: Mapping[str, str]) -> list[dict[str, str]]:
        """Workers of the model that could not be chosen."""
        return [
            {"worker": one.identity.id, "reason": reasons.get(one.identity.id, one.state.value)}
            for one in self._fleet.records()
            if one.identity.serves(found.model)
            and (one.state is not WorkerState.READY or one.identity.id in reasons)
        ]


def _path(named: str | None, body: Mapping[str, object]) -> bytes:
    path = None if named is None else named.encode()
    if path is None:
        path = next((path for name, path in _TOLD_BY.items() if name in body), None)
    if path in HOT_PATHS:
        return path
    known = ", ".join(sorted(map(bytes.decode, HOT_PATHS)))
    said = (
        "this body does not tell its endpoint" if named is None else f"no endpoint {named!r:.100}"
    )
    raise RequestError(f"{said}: give ?path= one of {known}", param="path")


def _by_score(found: Rehearsal) -> list[int]:
    """The chosen one first, then the best scores."""
    scores, chosen = found.scores, found.choice.index
    return sorted(range(len(scores)), key=lambda index: (index != chosen, scores[index]))


def _row(found: Rehearsal, index: int) -> dict[str, object]:
    """One candidate as the policy saw it. What is not known of its load is null."""
    columns = found.candidates
    cached, confirmed = found.cached_tokens[index], found.confirmed_tokens[index]
    return {
        "worker": columns.ids[index],
        "score": found.scores[index],
        "cached_tokens": cached,
        "confirmed_tokens": confirmed,
        "expected_tokens": cached - confirmed,
        "predicted_ttft_s": found.predicted_ttft_s[index],
        "load": {
            "requests_in_flight": columns.requests_in_flight[index],
            "uncached_tokens_in_flight": columns.uncached_tokens_in_flight[index],
            "running": columns.running[index],
            "waiting": columns.waiting[index],
            "queued_uncached_tokens": columns.queued_uncached_tokens[index],
            "queued_elsewhere": columns.queued_elsewhere[index],
            "kv_share_used": columns.kv_share_used[index],
            "prefill_tokens_per_s": columns.prefill_tokens_per_s[index],
        },
    }
