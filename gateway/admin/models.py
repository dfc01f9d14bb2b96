"""The models of the fleet, as OpenAI's and SGLang's clients ask for them."""

from aiohttp import web

from radixgate.errors import NoWorkerAvailable, UnknownModel
from radixgate.fleet.fleet import WorkerIdentity
from radixgate.gateway.admin.access import CALLER
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.asking.asked_model import Served, pairs_of
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.workers.workers import Workers


class ModelRoutes:
    """Handlers of `/v1/models` and `/get_model_info`: each caller sees what its key may use."""

    def __init__(self, workers: Workers, served: Served, started_at: float) -> None:
        """`started_at`: of the gateway, in seconds since the epoch; no model tells its own."""
        self._workers = workers
        self._served = served
        self._created = int(started_at)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self.models),
            # A name may hold slashes, and clients send them as they are.
            web.get("/v1/models/{name:.+}", self.model),
            web.get("/get_model_info", self.model_info),
        ]

    async def models(self, request: web.Request) -> web.Response:
        """Merged over the ready workers."""
        caller = request[CALLER]
        data = [self._shown(name, caller) for name in self._names(caller)]
        return json_answer({"object": "list", "data": data})

    async def model(self, request: web.Request) -> web.Response:
        """One of them. Raises UnknownModel with the list."""
        name, caller = request.match_info["name"], request[CALLER]
        known = self._names(caller)
        if name not in known:
            raise UnknownModel(name, known)
        return json_answer(self._shown(name, caller))

    async def model_info(self, request: web.Request) -> web.Response:
        """Of the first ready worker whose model the caller may use: SGLang's clients expect one.

        A client is told the model's name, not where its files lie on the worker's machine.
        """
        caller = request[CALLER]
        for member in self._workers.ready():
            if member.identity is None or not caller.models_of({member.identity.model}):
                continue
            named = {"model_path": member.identity.model}
            result = await member.handle.info("/get_model_info")
            if result.ok and isinstance(result.answer, dict):
                return json_answer(result.answer if caller.admin else {**result.answer, **named})
            return json_answer({**named, "served_model_name": member.identity.model})
        raise NoWorkerAvailable("no worker is ready")

    def _names(self, caller: Caller) -> list[str]:
        names = {name for one in self._ready() for name in one.names}
        return sorted({*caller.models_of(names), *pairs_of(caller, self._served)})

    def _ready(self) -> list[WorkerIdentity]:
        return [one.identity for one in self._workers.ready() if one.identity is not None]

    def _shown(self, name: str, caller: Caller) -> dict[str, object]:
        """An adapter's `parent` is the model it belongs to, an alias' `root` the one it stands for,
        where the caller may know of it."""
        of_it = [one for one in self._ready() if one.serves(name)]
        models = caller.models_of({one.model for one in of_it})
        model = None if name in models else next(iter(sorted(models)), None)
        adapter = any(name in one.adapters for one in of_it)
        return {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "radixgate",
            "root": name if adapter or model is None else model,
            "parent": model if adapter else None,
        }
