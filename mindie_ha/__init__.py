"""mindie-ha: keeps MindIE inference services and Ascend training jobs running when things fail."""

__version__ = "0.1.0"
