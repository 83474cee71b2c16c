"""Memory systems behind the adapter contract, one module each. Each imports its system's package when it is opened."""

#: The memory system that ``memorydojo demo`` runs unless told otherwise.
DEMO_MEMORY = "mem0"
