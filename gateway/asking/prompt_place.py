"""Where a request's prompt may be known: under which model, adapter and salt, in which mirrors."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from radixgate.fleet.fleet import Fleet, MirrorKey
from radixgate.gateway.asking.asked_model import (
    AskedModel,
    asked_model,
    check_adapters,
    listed_adapters,
)
from radixgate.gateway.asking.foreign_request import ForeignRequest
from radixgate.gateway.attempt.caller import Caller
from radixgate.proto.blocks import root_id

BYTES: Literal["bytes"] = "bytes"
# Of models and salts.
_MAX_ROOTS = 4_096


class Place(msgspec.Struct, frozen=True, gc=False):
    """Of a prompt that only foreign workers are to see."""

    model: str
    adapters: tuple[str, ...]  # that workers list; one of those that have them all shall answer
    keys: Sequence[MirrorKey]
    root: int  # of the prompt's blocks


class Places:
    """As the fleet is now."""

    def __init__(self, fleet: Fleet, unheard_of: Callable[[], int]) -> None:
        """`unheard_of`: workers that may yet say what they serve."""
        self._fleet = fleet
        self._served = fleet.served
        self._unheard_of = unheard_of
        self._root_of = lru_cache(maxsize=_MAX_ROOTS)(root_id)
        self._without_adapter = lru_cache(maxsize=_MAX_ROOTS)(self._place)
        self._names = fleet.served.names  # as they were when all that it keeps was found

    def of(self, request: ForeignRequest, caller: Caller, *, ours: bool = True) -> Place | None:
        """None: workers of ours serve what it asks for, or nobody else does. `ours`: they have the
        endpoint. Raises as `asked`."""
        model, adapters, served = request.model, request.adapters, self._served
        if served.names is not self._names:  # somebody has come, gone, or is called otherwise
            self._names = served.names
            self._without_adapter.cache_clear()
        first: str | None = None
        if model is None or caller.models is not None or model not in served.names:
            model, first = self.asked(model, caller)
            check_adapters(adapters, caller)
        salt = salt_of(caller, request.salt) if caller.salted else request.salt
        if first is None and not adapters:
            return self._without_adapter(model, salt, ours)
        # The worker, too, takes the one in the model's name before the others.
        named = adapters if first is None else (first,)
        return self._place(model, salt, ours, named[0], listed_adapters(model, named, served))

    def _place(
        self,
        model: str,
        salt: str | None,
        ours: bool,
        first: str | None = None,
        listed: tuple[str, ...] = (),
    ) -> Place | None:
        """`first`: of the adapters that are named."""
        keys = self._fleet.mirrors_of(model)
        if listed or not ours:  # of what is listed workers of ours have none
            keys = tuple(key for key in keys if key.unit == BYTES)
            if not keys and model in self._served.own:
                return None
        if any(key.unit != BYTES for key in keys):
            return None
        if first is not None and first in listed:
            # Known, too, where it is asked for by its own name, and the model is not named.
            return Place(model, listed, keys, self._root_of(first, None, salt))
        space = self._served.space_of(model)
        return Place(model, listed, keys, self._root_of(space, first, salt))

    def root(self, model: str, salt: str | None) -> int:
        """Of the blocks of a prompt without an adapter."""
        return self._root_of(self._served.space_of(model), None, salt)

    def asked(self, name: object, caller: Caller) -> AskedModel:
        """What to route by. Raises as `asked_model`."""
        return asked_model(name, caller, self._served, self._unheard_of)

    def are_ours(self, name: object, caller: Caller, *, alone: bool = False) -> bool:
        """Workers of ours serve the model of this name; `alone`: and no others do. Raises as
        `asked`."""
        model, adapter = self.asked(name, caller)
        if adapter is not None or model not in self._served.own:
            return False
        return not (alone and any(key.unit == BYTES for key in self._fleet.mirrors_of(model)))


def salt_of(caller: Caller, given: str | None) -> str | None:
    return caller.salt((given or "").encode()) or given
