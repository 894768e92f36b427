"""The HTTP face: API, pages and event streams."""
