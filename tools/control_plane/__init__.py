"""A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

Built from Debian's own packages, so it needs apt and no container engine; everything listens on loopback, on
free ports, with RBAC on. `python -m tools.control_plane run -- CMD` is the whole of it in one line.
There are no kubelets: `mindie-ha sim --actors-only` plays them, and all else that a cluster of the field has.
"""
