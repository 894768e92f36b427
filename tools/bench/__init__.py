"""How fast the product is, measured on the embedded cluster over loopback sockets. See `__main__.py`."""
