"""The forward pass over rows of many sequences, by torch or by compiled kernels."""
