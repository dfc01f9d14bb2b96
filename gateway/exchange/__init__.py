"""One request on its way: asked of the fleet, tried at workers, answered exactly once."""
