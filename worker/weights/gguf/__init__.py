"""Models in GGUF files: shape, tensors and tokenizer."""
