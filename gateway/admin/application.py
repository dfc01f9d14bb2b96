"""Everything but generations: an ordinary aiohttp application on the gateway's port.

Each answer closes its connection, so that a client's pool never sends a generation down a
connection that was handed over to this application.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from radixgate import __version__
from radixgate.errors import InternalFault, NoWorkerAvailable, RadixgateError, RequestError
from radixgate.fleet.fleet import Fleet, WorkerState
from radixgate.gateway.admin import openapi
from radixgate.gateway.admin.access import key_check
from radixgate.gateway.admin.body import body_within
from radixgate.gateway.admin.explain import ExplainRoutes
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.admin.loads import LoadRoutes
from radixgate.gateway.admin.mirror import MirrorRoutes
from radixgate.gateway.admin.models import ModelRoutes
from radixgate.gateway.admin.responses import ResponseRoutes
from radixgate.gateway.admin.rids import read_rids
from radixgate.gateway.admin.tokens import TokenRoutes
from radixgate.gateway.admin.workers import WorkerRoutes
from radixgate.gateway.asking.foreign_request import HOT_PATHS
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.observe.metrics import GatewayMetrics
from radixgate.gateway.workers.reached import Reached, merged
from radixgate.gateway.workers.worker_handle import OrderResult, WorkerHandle
from radixgate.gateway.workers.workers import Member, Workers
from radixgate.log import fields
from radixgate.proto.fields import Fields, decode_object
from radixgate.proto.http_banner import without_versions
from radixgate.proto.http_errors import errors_as_json

# Given nothing new or not, it may still run what was sent before.
_MAY_RUN = (WorkerState.READY, WorkerState.PAUSED, WorkerState.DRAINING)
_log = logging.getLogger(__name__)
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def _nobody_else(order: AbortOrder) -> Reached:
    return Reached()


async def _at_once() -> None: ...


async def _no_settings(request: web.Request) -> web.Response:
    raise RequestError("this gateway was not started from settings that can be read again")


@dataclass(slots=True)
class Admin:
    """The handlers, and what they look at."""

    workers: Workers
    fleet: Fleet
    metrics: GatewayMetrics
    policy: str
    own_headers: OwnHeaders
    keys: KeyRing
    prompts: PromptTokenizer
    stored: StoredResponses
    held: HeldRequests  # what no worker has
    gateway_id: str = ""  # by which one knows itself among its workers
    draining: bool = False
    started_at: float = 0.0  # seconds since the epoch
    body_within_s: float = 60.0  # for the largest body over a slow line; orders are short
    # Where several processes answer generations: what they have counted, and what they run.
    read_metrics: Callable[[], Awaitable[bytes]] | None = None
    abort_elsewhere: Callable[[AbortOrder], Awaitable[Reached]] = _nobody_else
    before_flush: Callable[[], Awaitable[None]] = _at_once
    flushed_elsewhere: Callable[[str], None] = lambda worker_id: None
    settled: Callable[[], Awaitable[None]] = _at_once  # what was ordered is in force everywhere
    reload: Callable[[web.Request], Awaitable[web.Response]] = _no_settings

    def application(self, max_body_bytes: int) -> web.Application:
        app = web.Application(
            client_max_size=max_body_bytes,
            middlewares=[
                self.finish,
                errors_as_json,
                key_check(lambda: self.keys),
                body_within(lambda: self.body_within_s),
            ],
        )
        app.on_response_prepare.append(without_versions)
        app.add_routes(
            [
                web.get("/openapi.json", self.openapi),
                web.get("/health", self.health),
                web.get("/liveness", self.health),
                web.get("/health_generate", self.health_generate),
                web.get("/readiness", self.readiness),
                web.get("/get_server_info", self.server_info),
                web.get("/metrics", self.exposition),
                web.get("/flush_cache", self.flush_cache),
                web.post("/flush_cache", self.flush_cache),
                web.post("/abort_request", self.abort_request),
                web.post("/reload", self.reload_settings),
            ]
        )
        app.add_routes(ModelRoutes(self.workers, self.fleet.served, self.started_at).routes())
        app.add_routes(WorkerRoutes(self.workers, self.fleet).routes())
        app.add_routes(TokenRoutes(self.workers, self.fleet, self.prompts).routes())
        app.add_routes(ResponseRoutes(self.workers, self.stored).routes())
        asking = Asking(self.fleet, self.prompts, self.stored, self.workers.roster.unheard_of)
        explain = ExplainRoutes(
            self.workers.choice,
            self.fleet,
            asking,
            lambda: self.policy,
            lambda: self.keys.limits.keys(),
        )
        app.add_routes(explain.routes())
        app.add_routes(MirrorRoutes(self.fleet, self.workers.find).routes())
        waiting = self.metrics.read_waiting
        app.add_routes(LoadRoutes(self.fleet, waiting).routes())
        # A POST never comes here; other methods learn what is allowed.
        app.add_routes([web.post(path.decode(), _misrouted) for path in sorted(HOT_PATHS)])
        return app

    @web.middleware
    async def finish(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Every answer has the gateway's headers, and closes its connection."""
        answer = await handler(request)
        if request.method not in ("GET", "HEAD"):
            await self.settled()
        answer.headers.update(self.own_headers.for_request(request.raw_headers))
        answer.force_close()
        return answer

    # ------------------------------------------------------------ how it is

    async def openapi(self, request: web.Request) -> web.Response:
        return json_answer(openapi.document())

    async def health(self, request: web.Request) -> web.Response:
        """The process lives; whether it can answer is /readiness."""
        return json_answer({"status": "ok"})

    async def readiness(self, request: web.Request) -> web.Response:
        ready = len(self.workers.ready())
        good = ready > 0 and not self.draining
        state = "draining" if self.draining else "ready" if good else "no worker is ready"
        return json_answer({"status": state, "ready_workers": ready}, 200 if good else 503)

    async def exposition(self, request: web.Request) -> web.Response:
        body = self.metrics.exposition() if self.read_metrics is None else await self.read_metrics()
        return web.Response(body=body, headers={"content-type": _METRICS_TYPE})

    async def health_generate(self, request: web.Request) -> web.Response:
        """A worker has just generated a token; 503 if none does. Each is asked, until one has."""
        for member in self.workers.ready():
            result = await member.handle.info("/health_generate")
            if result.ok:
                return json_answer({"status": "ok", "worker": member.address.id})
        raise NoWorkerAvailable("no worker that is ready has generated anything when asked to")

    async def server_info(self, request: web.Request) -> web.Response:
        """The first ready worker's answer, as SGLang's clients read it, and all by id."""
        ready = self.workers.ready()
        results = await _each(ready, lambda handle: handle.info("/get_server_info"))
        answers = {
            worker_id: result.answer
            for worker_id, result in results.items()
            if result.ok and isinstance(result.answer, dict)
        }
        first = dict(next(iter(answers.values()), {}))
        first.pop("instance_id", None)  # of a worker; who asks for it is answered by this gateway
        own = {
            "id": self.gateway_id,
            "version": __version__,
            "policy": self.policy,
            "workers": len(ready),
        }
        return json_answer({**first, "gateway": own, "workers": answers})

    # ------------------------------------------------------------ orders to workers

    async def flush_cache(self, request: web.Request) -> web.Response:
        await self.before_flush()
        results = await self._order_all(lambda handle: handle.flush_cache())
        for worker_id, result in results.items():
            if result.ok:
                self.fleet.flushed(worker_id)
                self.flushed_elsewhere(worker_id)
        await self.settled()  # a GET too
        # As SGLang has it: a worker that is busy refuses, and the caller may try again.
        return _order_answer(results, all(result.ok for result in results.values()))

    async def abort_request(self, request: web.Request) -> web.Response:
        """To the worker that runs it as far as this gateway knows, else to every one."""
        order = _abort_order(Fields(decode_object(await request.read())))
        # First, or they would begin right after everything has been ended.
        reached = await self.abort_elsewhere(order)
        results = reached.results
        try:
            results, success = await self._abort_here(order, reached)
        finally:
            reached.over(results)
        return _order_answer(results, success)

    async def _abort_here(
        self, order: AbortOrder, reached: Reached
    ) -> tuple[Mapping[str, OrderResult], bool]:
        """All results, and whether that is a success."""
        present = [one for one in self.workers.members() if one.state in _MAY_RUN]
        await read_rids(order, self.held, present)
        held = self.held.abort(order) + reached.held
        owners = [one for one in present if one.handle.runs(order)]
        found = bool(owners or held or reached.results)
        asked = owners if order.rid is not None and found else present
        if not asked and found:
            return reached.results, True
        results = await _order(asked, lambda handle: handle.abort_request(order))
        results = merged(reached.results, results)
        return results, any(result.ok for result in results.values())

    async def reload_settings(self, request: web.Request) -> web.Response:
        return await self.reload(request)

    async def _order_all(
        self, order: Callable[[WorkerHandle], Awaitable[OrderResult]]
    ) -> Mapping[str, OrderResult]:
        return await _order(self.workers.ready(), order)


async def _order(
    members: Sequence[Member], order: Callable[[WorkerHandle], Awaitable[OrderResult]]
) -> Mapping[str, OrderResult]:
    """Each member's result, by its id. Raises NoWorkerAvailable if there is no member."""
    if not members:
        raise NoWorkerAvailable("no worker is ready")
    return await _each(members, order)


async def _each(
    members: Sequence[Member], order: Callable[[WorkerHandle], Awaitable[OrderResult]]
) -> Mapping[str, OrderResult]:
    """Each member's result, by its id."""

    async def one(member: Member) -> OrderResult:
        try:
            return await order(member.handle)
        except RadixgateError as error:
            return OrderResult(False, error.message)
        except Exception:
            # What the others have done must be told all the same.
            _log.exception("an order went wrong", extra=fields(worker=member.address.id))
            return OrderResult(False, InternalFault().message)

    results = await asyncio.gather(*map(one, members))
    return {member.address.id: result for member, result in zip(members, results, strict=True)}


def _abort_order(given: Fields) -> AbortOrder:
    """Raises RequestError."""
    rid, everything = given.text("rid"), given.flag("abort_all")
    if not rid and not everything:
        raise RequestError("give a rid, or abort_all: true", param="rid")
    return AbortOrder(None if everything else rid, prefix=given.flag("prefix") or False)


def _order_answer(results: Mapping[str, OrderResult], success: bool) -> web.Response:
    workers = {
        worker_id: {"success": result.ok, "message": result.message}
        for worker_id, result in results.items()
    }
    return json_answer({"success": success, "workers": workers}, 200 if success else 409)


async def _misrouted(request: web.Request) -> web.Response:
    if "%" in request.raw_path.partition("?")[0]:
        raise RequestError(f"write the path as it is, {request.path}, without percent signs")
    # Only behind an admin request on a connection that is closing already.
    raise RequestError("send this on a connection of its own")
