"""Saved runs for other tools: tables as CSV, JSON Lines and Parquet, Inspect logs, AgentDojo traces.

Each export says whether runs were simulated, is written whole or not at all, and replaces only what an export wrote.
"""

from memorydojo.export.agentdojo import write_agentdojo
from memorydojo.export.inspect import write_inspect
from memorydojo.export.tables import labels_table, write_table

__all__ = ["labels_table", "write_agentdojo", "write_inspect", "write_table"]
