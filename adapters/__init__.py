"""Memory systems behind the adapter contract, one module each. Each imports its system's package when it is opened."""
