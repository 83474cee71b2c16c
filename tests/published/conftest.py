"""The makers of session tables are those of the tests of the metrics."""

from tests.metrics.conftest import run_rows

__all__ = ["run_rows"]
