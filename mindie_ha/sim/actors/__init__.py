"""The infrastructure around the API server: operator, scheduler, kubelet, Device Plugin, ClusterD, node lifecycle."""
