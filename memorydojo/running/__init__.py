"""Running trajectories: one retrieve-interact-write session, one run, many runs."""
