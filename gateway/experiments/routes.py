"""Experiments by HTTP: listed, declared, started, stopped and read."""

from aiohttp import web

from radixgate.configs.declare import Knob, knobs_of
from radixgate.configs.load import named_entry
from radixgate.configs.spelling import nearest
from radixgate.configs.values import Given, value_of, written_form
from radixgate.errors import ConfigError, RequestError
from radixgate.gateway.admin.json_answer import json_answer
from radixgate.gateway.experiments.experiments import Experiments
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig
from radixgate.proto.fields import decode_object


class ExperimentRoutes:
    """Handlers of `/experiments`; all are an admin's, as everything is that is not a client's."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/experiments", self.list_all),
            web.post("/experiments", self.declare),
            web.get("/experiments/{name}", self.show),
            web.post("/experiments/{name}/start", self.start),
            web.post("/experiments/{name}/stop", self.stop),
        ]

    async def list_all(self, request: web.Request) -> web.Response:
        rows = [known.row() for known in self._experiments.all()]
        return json_answer({"experiments": rows, "total": len(rows)})

    async def show(self, request: web.Request) -> web.Response:
        return json_answer(self._experiments.find(request.match_info["name"]).details())

    async def declare(self, request: web.Request) -> web.Response:
        """`{"name": ..., "kind": ..., "b": ...}` and any other setting; `"start": true` begins."""
        body = dict(decode_object(await request.read()))
        name = body.pop("name", None)
        if not isinstance(name, str):
            raise RequestError("name is missing: what the experiment is called", param="name")
        try:
            config = _config_of(name, body)
            if config.start:
                known = self._experiments.declare_and_start(name, config)
            else:
                known = self._experiments.declare(name, config)
        except ConfigError as error:
            raise RequestError(error.message) from error
        return json_answer(known.details())

    async def start(self, request: web.Request) -> web.Response:
        try:
            known = self._experiments.start(request.match_info["name"])
        except ConfigError as error:
            raise RequestError(error.message) from error
        return json_answer(known.details())

    async def stop(self, request: web.Request) -> web.Response:
        """The gateway's own policy is back when this is answered."""
        return json_answer(self._experiments.stop(request.match_info["name"]).details())


def _config_of(name: str, body: dict[str, object]) -> LiveExperimentConfig:
    """As the same settings in a file would make it. Raises ConfigError, or RequestError."""
    knobs = {knob.name: knob for knob in knobs_of(LiveExperimentConfig)}
    values: dict[str, object] = {}
    for key, value in body.items():
        if key not in knobs:
            raise RequestError(f"{key:.50} is no setting; nearest is {nearest(key, knobs)}")
        values[key] = value_of(knobs[key], Given(_written(knobs[key], value), key))
    return named_entry(f"experiment {name:.64}", LiveExperimentConfig, values)


def _written(knob: Knob, value: object) -> str | tuple[str | None, ...] | None:
    """As one would write it in a file."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(written_form(item) for item in value)
    if isinstance(value, dict):
        raise ConfigError(f"{knob.name}: expected one value or a list, not an object")
    return written_form(value)
