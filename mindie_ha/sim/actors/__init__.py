"""The infrastructure around the API server, each part as the real one behaves."""
