"""The offline simulator: what stands in for models so that everything runs with no key and no network."""
