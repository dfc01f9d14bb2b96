"""From a request's body to what the fleet is asked: model, prompt, block ids."""
