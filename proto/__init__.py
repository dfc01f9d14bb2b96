"""The wire: the worker contract, block ids, OpenAI and native requests and answers."""
