"""The models of a run: who answers the agent, the memory system and the judge."""
