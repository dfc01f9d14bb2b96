"""The model that a request is about: the one it names, or the only one that its sender may use."""

from collections.abc import Callable, Set

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.gateway.caller import Caller


def asked_model(
    name: object, caller: Caller, served: Set[str], unheard_of: Callable[[], int]
) -> str:
    """`name` as the body has it; None: it names none. `served`: by whoever is in the fleet.

    `unheard_of`: workers that have not said yet what they serve, but for those whose checks fail;
    asked only where it matters. Of a fleet that begins, or begins again, nothing is the last word:
    then it is 503, and not 404.
    Raises UnknownModel, RequestError, or NoWorkerAvailable.
    """
    models = caller.models_of(served)
    if isinstance(name, str) and name in models:
        return name
    if name is not None and not isinstance(name, str):
        raise RequestError("model must be a string", param="model")
    if not served:
        raise NoWorkerAvailable("no worker has joined yet")
    if name is None:
        if len(models) != 1:
            known = ", ".join(sorted(models))
            raise RequestError(f"name a model: {known or 'none is open to you'}", param="model")
        (only,) = models
        return only
    late = unheard_of() if name else 0  # nobody's model is called nothing
    if late and (caller.models is None or name in caller.models):
        raise NoWorkerAvailable(
            f"no worker serves the model {name!r:.200} so far, and of {late} it is not known yet"
            f" what they serve; there are: {', '.join(sorted(models))}"
        )
    raise UnknownModel(name, models)
