"""Parse hccl.json; build, validate and compare the global rank table. Pure."""
