"""What all tests share. The network is off but for loopback (see pyproject.toml)."""
