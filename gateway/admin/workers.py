"""The workers by HTTP: added, shown, paused, labelled and removed; older spellings too."""

from collections.abc import Mapping

from aiohttp import web

from radixgate.errors import ConfigError, RequestError
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.settings.access_config import check_key
from radixgate.gateway.workers.worker_rows import worker_row
from radixgate.gateway.workers.workers import Member, Workers
from radixgate.proto.fields import Fields, decode_object

_ADD_FIELDS = frozenset(("url", "api_key", "worker_type", "labels"))
_PUT_FIELDS = frozenset(("state", "labels"))
_PAUSED = {"paused": True, "ready": False}
_MOST_LABELS = 64
_LONGEST_LABEL = 128  # characters of its name, and of its value


class WorkerRoutes:
    """Handlers of `/workers` and of SGLang's older routes."""

    def __init__(self, workers: Workers, fleet: Fleet) -> None:
        self._workers = workers
        self._fleet = fleet

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/workers", self.list_all),
            web.post("/workers", self.add),
            web.get("/workers/{name:.+}", self.show),
            web.put("/workers/{name:.+}", self.change),
            web.delete("/workers/{name:.+}", self.remove),
            web.get("/list_workers", self.list_urls),
            web.post("/add_worker", self.add_by_query),
            web.post("/remove_worker", self.remove_by_query),
        ]

    async def list_all(self, request: web.Request) -> web.Response:
        rows = [self._row(member) for member in self._workers.members()]
        return json_answer({"workers": rows, "total": len(rows)})

    async def show(self, request: web.Request) -> web.Response:
        return json_answer(self._row(self._named(request)))

    async def add(self, request: web.Request) -> web.Response:
        """Idempotent; labels given for a worker that is there are taken over."""
        body = decode_object(await request.read())
        _refuse_unknown(body, _ADD_FIELDS)
        order = Fields(body)
        url, key, kind = order.text("url"), order.text("api_key"), order.text("worker_type")
        if not url:
            raise RequestError('url is missing: {"url": "http://host:port"}', param="url")
        if kind not in (None, "regular"):
            raise RequestError(
                f"worker_type {kind!r:.50}: only regular workers are served", param="worker_type"
            )
        try:
            check_key("api_key", key)
        except ConfigError as error:
            raise RequestError(error.message, param="api_key") from error
        labels = _labels(order)
        member = self._workers.add(url, key)
        if labels is not None:
            member.labels = labels
        return json_answer(self._row(member))

    async def change(self, request: web.Request) -> web.Response:
        """`{"state": "paused"}` or `"ready"`, `{"labels": {...}}`, or both."""
        member = self._named(request)
        body = decode_object(await request.read())
        _refuse_unknown(body, _PUT_FIELDS)
        order = Fields(body)
        state, labels = order.text("state"), _labels(order)
        if state is None and labels is None:
            raise RequestError("give a state, labels, or both", param="state")
        if state is not None and state not in _PAUSED:
            raise RequestError(
                f"state {state!r:.50}: a worker is made paused or ready", param="state"
            )
        if state is not None:
            self._workers.pause(member, paused=_PAUSED[state])
        if labels is not None:
            member.labels = labels
        return json_answer(self._row(member))

    async def remove(self, request: web.Request) -> web.Response:
        return await self._removed(request.match_info["name"])

    async def list_urls(self, request: web.Request) -> web.Response:
        return json_answer({"urls": [one.address.url for one in self._workers.members()]})

    async def add_by_query(self, request: web.Request) -> web.Response:
        return json_answer(self._row(self._workers.add(_url_of(request))))

    async def remove_by_query(self, request: web.Request) -> web.Response:
        return await self._removed(_url_of(request))

    async def _removed(self, name: str) -> web.Response:
        member = self._workers.find(name)
        await self._workers.before_leaving(member)
        member = self._workers.remove(member.address.id)
        state = "draining" if member.leaving else "removed"
        return json_answer({"id": member.address.id, "state": state})

    def _row(self, member: Member) -> dict[str, object]:
        return worker_row(member, self._fleet, self._workers.choice)

    def _named(self, request: web.Request) -> Member:
        return self._workers.find(request.match_info["name"])


def _url_of(request: web.Request) -> str:
    url = request.query.get("url")
    if not url:
        raise RequestError("url is missing: ?url=http://host:port", param="url")
    return url


def _labels(order: Fields) -> Mapping[str, str] | None:
    """None: none are given. Raises RequestError unless all are short texts."""
    given = order.mapping("labels")
    if given is None:
        return None
    labels: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str) or max(len(name), len(value)) > _LONGEST_LABEL:
            raise RequestError(
                f"labels.{name:.50} must be a text, and both at most {_LONGEST_LABEL} characters",
                param="labels",
            )
        labels[name] = value
    if len(labels) > _MOST_LABELS:
        raise RequestError(f"at most {_MOST_LABELS} labels, not {len(labels)}", param="labels")
    return labels


def _refuse_unknown(body: Mapping[str, object], known: frozenset[str]) -> None:
    for name in body:
        if name not in known:
            raise RequestError(
                f"{name:.50} is not known here; there are {', '.join(sorted(known))}", param=name
            )
