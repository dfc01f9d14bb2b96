"""The worker's HTTP routes beside generation: health, facts, flush, abort, metrics."""

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from radixgate.errors import NoWorkerAvailable, RequestError
from radixgate.proto.fields import Fields, decode_object
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine, EngineStats
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.metrics import WorkerMetrics
from radixgate.worker.serving.request_body import BodyPace, read_body

HEALTH_GENERATE_TIMEOUT_S = 20.0


class AdminRoutes:
    """What operators, gateways and dashboards ask of a worker."""

    def __init__(
        self,
        engine: Engine,
        info: pb.WorkerInfo,
        metrics: WorkerMetrics | None,
        settings: Mapping[str, object],
        serving: Callable[[], bool],
        arriving_requests: ArrivingRequests,
    ) -> None:
        """`metrics` None: /metrics is not served. `settings` are shown by /get_server_info.
        `arriving_requests`: those who are aborted beside the engine's requests."""
        self._arriving_requests = arriving_requests
        self._engine = engine
        self._info = info
        self._metrics = metrics
        self._settings = settings
        self._serving = serving

    def add_to(self, app: web.Application) -> None:
        routes = app.router
        routes.add_get("/health", self._health)
        routes.add_get("/health_generate", self._health_generate)
        routes.add_get("/v1/models", self._models)
        routes.add_get("/get_model_info", self._model_info)
        routes.add_get("/get_server_info", self._server_info)
        routes.add_get("/get_load", self._load)
        routes.add_get("/v1/loads", self._loads)
        routes.add_get("/flush_cache", self._flush)
        routes.add_post("/flush_cache", self._flush)
        routes.add_post("/abort_request", self._abort)
        if self._metrics is not None:
            routes.add_get("/metrics", self._show_metrics)

    async def _health(self, http: web.Request) -> web.Response:
        self._check_serving()
        return web.json_response({"status": "ok"})

    async def _health_generate(self, http: web.Request) -> web.Response:
        """Healthy only if the engine really takes a step within the time-out."""
        self._check_serving()
        probe = _Probe()
        submit = pb.Submit(
            handle=1,
            rid=f"health-{id(probe):x}",
            input_ids=(0).to_bytes(4, "little"),
            sampling=pb.Sampling(max_tokens=1, temperature=0.0, ignore_eos=True),
            # Of a namespace of its own, so that it never meets anyone's prefixes.
            salt="health",
            credit=1,
        )
        self._engine.submit(probe, submit)
        try:
            async with asyncio.timeout(HEALTH_GENERATE_TIMEOUT_S):
                await probe.answered.wait()
        except TimeoutError:
            raise NoWorkerAvailable(
                f"the engine has not taken a step for {HEALTH_GENERATE_TIMEOUT_S:g} s"
            ) from None
        finally:
            self._engine.detach(probe)
        return web.json_response({"status": "ok"})

    async def _models(self, http: web.Request) -> web.Response:
        info = self._info
        model = {
            "id": info.model,
            "object": "model",
            "created": 0,  # it does not say when it was made
            "owned_by": "radixgate",
            "root": info.model_path,
            "max_model_len": info.context_length,
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _model_info(self, http: web.Request) -> web.Response:
        info = self._info
        return web.json_response(
            {
                "model_path": info.model_path,
                "served_model_name": info.model,
                "is_generation": True,
                "weight_version": info.weight_version,
                "max_model_len": info.context_length,
                "vocab_size": info.vocab_size,
            }
        )

    async def _server_info(self, http: web.Request) -> web.Response:
        stats, info = self._engine.stats(), self._info
        pages = stats.pages
        return web.json_response(
            {
                **self._settings,
                "version": info.version,
                "instance_id": info.instance_id,
                "served_model_name": info.model,
                "page_size": info.page_size,
                "max_total_num_tokens": info.capacity_tokens,
                "context_length": info.context_length,
                "pages": {
                    "free": pages.free,
                    "evictable": pages.evictable,
                    "locked": pages.locked,
                    "total": pages.total,
                },
                "running": stats.running,
                "waiting": stats.waiting,
                "queued_uncached_tokens": stats.queued_uncached_tokens,
            }
        )

    async def _load(self, http: web.Request) -> web.Response:
        """SGLang's older form: one element for each replica, and a worker is one."""
        stats = self._engine.stats()
        load = {
            "dp_rank": 0,
            "num_reqs": stats.running + stats.waiting,
            "num_waiting_reqs": stats.waiting,
            "num_tokens": stats.pages.locked * stats.page_size + stats.queued_uncached_tokens,
        }
        return web.json_response([load])

    async def _loads(self, http: web.Request) -> web.Response:
        return web.json_response(loads_body(self._engine.stats(), self._info))

    async def _flush(self, http: web.Request) -> web.Response:
        ok, message = await self._engine.flush()
        if not ok:
            raise RequestError(f"the cache was not flushed: {message}")
        return web.json_response({"success": True, "message": message})

    async def _abort(self, http: web.Request) -> web.Response:
        body = Fields(decode_object(await read_body(http, BodyPace())))
        if body.flag("abort_all"):
            aborted = self._arriving_requests.abort_all() + self._engine.abort_all()
            return web.json_response({"aborted": aborted})
        rid = body.text("rid")
        if not rid:
            raise RequestError("give rid, or abort_all: true", param="rid")
        prefix = body.flag("prefix") or False
        aborted = self._arriving_requests.abort_rid(rid, prefix=prefix)
        aborted += self._engine.abort_rid(rid, prefix=prefix)
        return web.json_response({"aborted": aborted})

    async def _show_metrics(self, http: web.Request) -> web.Response:
        assert self._metrics is not None
        return web.Response(
            body=self._metrics.render(),
            headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    def _check_serving(self) -> None:
        if not self._engine.alive:
            raise NoWorkerAvailable("the engine is not running")
        if not self._serving():
            raise NoWorkerAvailable("the worker is draining")


def loads_body(stats: EngineStats, info: pb.WorkerInfo) -> dict[str, object]:
    """What /v1/loads says: the one replica, and the sums over all of them."""
    pages, size, asked = stats.pages, stats.page_size, stats.prompt_tokens_total
    sums = {
        "num_running_reqs": stats.running,
        "num_waiting_reqs": stats.waiting,
        "num_used_tokens": pages.locked * size,
    }
    load = {
        "dp_rank": 0,
        **sums,
        "num_total_tokens": pages.locked * size + stats.queued_uncached_tokens,
        "max_total_num_tokens": pages.total * size,
        "token_usage": pages.locked / pages.total,
        "cache_hit_rate": stats.cached_tokens_total / asked if asked else 0.0,
        "max_running_requests": info.max_running_requests,
        "queued_uncached_tokens": stats.queued_uncached_tokens,
    }
    total = {**sums, "total_reqs": stats.running + stats.waiting}
    return {"version": info.version, "dp_rank_count": 1, "loads": [load], "aggregate": total}


class _Probe:
    """A sink that waits for any sign of life."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    def deliver(self, batch: pb.StepBatch) -> None:
        self.answered.set()
