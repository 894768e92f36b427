"""Programs for developers; nothing in the package imports them."""
