"""Reports of live experiments, from the records that the gateway or the simulator wrote."""
