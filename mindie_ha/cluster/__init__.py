"""The Kubernetes edge: transport, informers, store, writer, ledgers, events."""
