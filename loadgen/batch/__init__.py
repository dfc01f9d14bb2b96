"""Offline work: a file of requests through the fleet, each line answered exactly once."""
