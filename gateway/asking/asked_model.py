"""The model that a request is about: the one it names, or the only one that its sender may use."""

from collections.abc import Callable, Collection, Set
from typing import NamedTuple, Protocol

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

    def having(self, model: str, adapters: Collection[str]) -> Collection[str]:
        """The workers that list all these adapters, and the model under this name."""
        ...


class AskedModel(NamedTuple):
    """A name that is served, and an adapter of that: either alone may be another base's too."""

    name: str
    adapter: str | None = None  # None: none is named in one word with the model


def asked_model(
    name: object, caller: Caller, served: Served, unheard_of: Callable[[], int]
) -> AskedModel:
    """`name` as the body has it; None: it names none, and means the only model that there is.

    `unheard_of`: workers that have not said yet what they serve and may still be loading; asked
    only where it matters. Of a fleet that begins, or begins again, nothing is the last word: then
    it is 503, and not 404.
    Raises UnknownModel, RequestError, or NoWorkerAvailable.
    """
    models = caller.models_of(served.names)
    if isinstance(name, str) and name in models:
        return AskedModel(name)
    if name is not None and not isinstance(name, str):
        raise RequestError("model must be a string", param="model")
    # SGLang's way to name an adapter beside its model. Who may use one of them only learns nothing
    # of which belongs to which; a key may name both in one word, and opens neither alone then.
    model, colon, adapter = (name or "").partition(":")
    both = (model in models and adapter in models) or _names_pair(caller, name)
    if both and served.having(model, (adapter,)):
        return AskedModel(model, adapter)
    if not served.names:
        raise NoWorkerAvailable("no worker has joined yet")
    if name is None:
        # Not an alias or an adapter, though no more may be open to the caller: the worker would
        # take the model itself.
        bases = caller.models_of(served.models)
        if len(bases) != 1:
            known = ", ".join(sorted({*models, *pairs_of(caller, served)}))
            raise RequestError(f"name a model: {known or 'none is open to you'}", param="model")
        (only,) = bases
        return AskedModel(only)
    late = unheard_of() if name else 0  # nobody's model is called nothing
    if late and (_opens(caller, name) or (colon and _opens(caller, model, adapter))):
        raise NoWorkerAvailable(
            f"no worker serves the model {name!r:.200} so far, and of {late} it is not known yet"
            f" what they serve; there are: {', '.join(sorted(models))}"
        )
    raise UnknownModel(name, {*models, *pairs_of(caller, served)})


def pairs_of(caller: Caller, served: Served) -> list[str]:
    """What the key names as `model:adapter`, of those that are served. O(models of the key)."""
    pairs = [(name, name.partition(":")) for name in caller.models or () if ":" in name]
    return [name for name, (model, _, adapter) in pairs if served.having(model, (adapter,))]


def check_adapters(named: Collection[str], caller: Caller) -> None:
    """What is read beside the model opens no more than the key does. Raises UnknownModel."""
    for one in named:
        if not _opens(caller, one):
            raise UnknownModel(one, caller.models or ())


def listed_adapters(model: str, named: Collection[str], served: Served) -> tuple[str, ...]:
    """Those that workers list for the model, all at one of them; else the first such, which
    decides. Empty: nobody lists any, and whether it is there only the worker knows."""
    listed = tuple(one for one in named if served.having(model, (one,)))
    return listed if not listed or served.having(model, listed) else listed[:1]


def _names_pair(caller: Caller, name: str | None) -> bool:
    return caller.models is not None and name is not None and ":" in name and name in caller.models


def _opens(caller: Caller, *names: str) -> bool:
    return caller.models is None or caller.models.issuperset(names)
