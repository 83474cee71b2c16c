"""The collections of trajectories that ship, and reading others."""

from memorydojo.trajectories.collections import Collection, load, load_file, names, whole
from memorydojo.trajectories.histories import pair, select
from memorydojo.trajectories.longmemeval import HistoryFile

__all__ = ["Collection", "HistoryFile", "load", "load_file", "names", "pair", "select", "whole"]
