"""How the engine is reached: gRPC for gateways, HTTP for everybody, metrics."""
