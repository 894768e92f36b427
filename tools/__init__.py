"""Tools for developers of this project; not part of the installed package."""
