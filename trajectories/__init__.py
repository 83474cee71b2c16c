"""The collections of trajectories that ship, and reading others."""

from memorydojo.trajectories.collections import Collection, load, load_file, names

__all__ = ["Collection", "load", "load_file", "names"]
