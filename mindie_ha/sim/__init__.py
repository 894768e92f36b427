"""The embedded cluster: a Kubernetes API server in one process and the actors around it."""
