"""Delivery of tables and reports: gRPC, HTTP push, ConfigMap. No policy."""
