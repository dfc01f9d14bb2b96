"""Stored responses, read, cancelled and deleted: by the worker that has each, for its tenant."""

import re
from collections.abc import Sequence

from aiohttp import web

from radixgate.errors import RadixgateError, RequestError, UnknownResponse
from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.admin.access import CALLER
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.upstream.fetch import Fetched
from radixgate.gateway.workers.workers import Member, Workers

# What an engine gives out; anything else would be another path to some server.
_FIT_ID = re.compile(r"[\w-]+", re.ASCII)
_ONE = "/v1/responses/{name}"


class ResponseRoutes:
    """Handlers of everything below `/v1/responses/`; foreign workers alone have it."""

    def __init__(self, workers: Workers, stored: StoredResponses) -> None:
        self._workers = workers
        self._stored = stored

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(_ONE, self.pass_on, allow_head=False),
            web.delete(_ONE, self.pass_on),
            web.post(f"{_ONE}/cancel", self.pass_on),
            web.get(f"{_ONE}/input_items", self.pass_on, allow_head=False),
        ]

    async def pass_on(self, request: web.Request) -> web.Response:
        """The answer of the worker that has it. If that is not known, each is asked in turn.

        Raises UnknownResponse, RequestError for a stream; as `fetch`.
        """
        if any(one.lower() not in ("false", "0") for one in request.query.getall("stream", ())):
            raise RequestError(
                "a stored response is not streamed here; read it without stream", param="stream"
            )
        name, body = request.match_info["name"], await request.read()
        if not _FIT_ID.fullmatch(name):
            raise UnknownResponse(name)
        found: Fetched | None = None
        failure: RadixgateError | None = None
        for member in self._asked(name, request[CALLER]):
            try:
                found = await member.handle.ask(request.method, str(request.rel_url), body)
            except RadixgateError as error:
                failure = error
                continue
            if found.status != 404:
                return _answer(found)
        # Whoever could not be asked may be the one that has it.
        if failure is not None:
            raise failure
        assert found is not None, "nobody was asked"
        return _answer(found)

    def _asked(self, name: str, caller: Caller) -> Sequence[Member]:
        """Never empty; one alone if it is known who has it. Those that are ready come first."""
        there = [
            member
            for member in self._workers.members()
            if member.identity is not None
            and member.identity.kind == "http"
            and caller.models_of({*member.identity.names})
        ]
        holder = self._stored.worker_of(name, caller.tenant)
        there.sort(key=lambda one: one.state is not WorkerState.READY)
        asked = [one for one in there if one.address.id == holder] or there
        if not asked:
            raise UnknownResponse(name)  # workers of ours store none
        return asked


def _answer(found: Fetched) -> web.Response:
    return web.Response(body=found.body, status=found.status, content_type="application/json")
