"""The model that a request is about: the one it names, or the only one that its sender may use."""

from collections.abc import Callable, Set
from typing import Protocol

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.gateway.attempt.caller import Caller


class Served(Protocol):
    """By whoever is in the fleet."""

    @property
    def names(self) -> Set[str]: ...

    @property
    def models(self) -> Set[str]:
        """Of the names those that are a model's own, and neither an alias nor an adapter."""
        ...


def asked_model(name: object, caller: Caller, served: Served, unheard_of: Callable[[], int]) -> str:
    """`name` as the body has it; None: it names none, and means the only model that there is.

    `unheard_of`: workers that have not said yet what they serve and may still be loading; asked
    only where it matters. Of a fleet that begins, or begins again, nothing is the last word: then
    it is 503, and not 404.
    Raises UnknownModel, RequestError, or NoWorkerAvailable.
    """
    models = caller.models_of(served.names)
    if isinstance(name, str) and name in models:
        return name
    if isinstance(name, str) and (adapter := _adapter_of(name, served)) in models:
        return adapter
    if name is not None and not isinstance(name, str):
        raise RequestError("model must be a string", param="model")
    if not served.names:
        raise NoWorkerAvailable("no worker has joined yet")
    if name is None:
        # Not an alias or an adapter, though no more may be open to the caller: the worker would
        # take the model itself.
        bases = caller.models_of(served.models)
        if len(bases) != 1:
            known = ", ".join(sorted(models))
            raise RequestError(f"name a model: {known or 'none is open to you'}", param="model")
        (only,) = bases
        return only
    late = unheard_of() if name else 0  # nobody's model is called nothing
    if late and (caller.models is None or name in caller.models):
        raise NoWorkerAvailable(
            f"no worker serves the model {name!r:.200} so far, and of {late} it is not known yet"
            f" what they serve; there are: {', '.join(sorted(models))}"
        )
    raise UnknownModel(name, models)


def _adapter_of(name: str, served: Served) -> str:
    """SGLang's way to name one beside its model, `model:adapter`; empty: none is."""
    model, _, adapter = name.partition(":")
    return adapter if model in served.names and adapter not in served.models else ""
