"""The command line. No logic of its own."""
