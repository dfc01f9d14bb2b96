"""One request in the engine: checked, its choices and how far each output has come."""
