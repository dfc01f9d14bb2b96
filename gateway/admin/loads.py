"""How loaded the workers are, as far as this gateway knows: in SGLang's forms."""

from collections.abc import Callable

from aiohttp import web

from radixgate.fleet.fleet import Fleet, WorkerState, WorkerView
from radixgate.gateway.admin.json_answer import json_answer

# What a poller that waits for an idle fleet must not see as idle.
_SEEN = (WorkerState.READY, WorkerState.PAUSED, WorkerState.DRAINING)


class LoadRoutes:
    """Handlers of `/get_loads` and `/v1/loads`: nothing is asked of a worker for them."""

    def __init__(self, fleet: Fleet, read_waiting: Callable[[], int]) -> None:
        """`read_waiting`: requests in the gateway's own queue."""
        self._fleet = fleet
        self._read_waiting = read_waiting

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/get_loads", self.by_worker), web.get("/v1/loads", self.in_detail)]

    async def by_worker(self, request: web.Request) -> web.Response:
        """One number a worker: its requests, running and waiting."""
        rows = [
            {"worker": view.identity.url, "load": sum(_requests(view))} for view in self._views()
        ]
        return json_answer({"workers": rows})

    async def in_detail(self, request: web.Request) -> web.Response:
        """What is not known of a worker is null; `gateway` waits here and is at no worker yet."""
        views = self._views()
        loads = [_detail(view) for view in views]
        waiting = self._read_waiting()
        running = sum(_requests(view)[0] for view in views)
        queued = sum(_requests(view)[1] for view in views)
        aggregate = {
            "total_running_reqs": running,
            "total_waiting_reqs": queued + waiting,
            "total_reqs": running + queued + waiting,
        }
        return json_answer(
            {"loads": loads, "aggregate": aggregate, "gateway": {"num_waiting_reqs": waiting}}
        )

    def _views(self) -> list[WorkerView]:
        return [view for view in self._fleet.workers() if view.state in _SEEN]


def _requests(view: WorkerView) -> tuple[int, int]:
    """Running and waiting: as reported, else what this gateway has sent."""
    report = view.report
    return (view.in_flight, 0) if report is None else (report.running, report.waiting)


def _detail(view: WorkerView) -> dict[str, object]:
    report, (running, waiting) = view.report, _requests(view)
    total = view.identity.capacity_tokens if report is None else report.kv_tokens_total
    used = None if report is None else report.kv_tokens_used
    return {
        "worker": view.identity.url,
        "num_running_reqs": running,
        "num_waiting_reqs": waiting,
        "num_total_reqs": running + waiting,
        "num_waiting_uncached_tokens": None if report is None else report.queued_uncached_tokens,
        "num_used_tokens": used,
        "max_total_num_tokens": total,
        "token_usage": used / total if used is not None and total else None,
        "in_flight": view.in_flight,
    }
