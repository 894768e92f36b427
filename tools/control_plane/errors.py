"""What can go wrong with a control plane, as one kind with one sentence: what, and what to do about it."""

from __future__ import annotations


class ControlPlaneError(Exception):
    """The control plane cannot be had; the text says what is missing and what is needed."""
