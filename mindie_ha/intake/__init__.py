"""Raw Kubernetes bodies become fault records. Pure; every input is hostile."""
