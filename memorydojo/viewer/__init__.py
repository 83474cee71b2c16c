"""Pages that show what a payload did: the trace of one run, and the table of many. See ``docs/trace.md``."""

from memorydojo.viewer.pages import frame, sweep_page, trace_page, write_sweep, write_trace

__all__ = ["frame", "sweep_page", "trace_page", "write_sweep", "write_trace"]
