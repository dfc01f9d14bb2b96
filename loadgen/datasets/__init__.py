"""What is asked: one module a kind of workload, each a function from the config to prompts."""
