"""Importing onnxruntime without its telemetry, which official builds send to Microsoft by default."""

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from types import ModuleType

_LOCK = threading.RLock()


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Sets environment variables, for packages that read them when they are imported, and restores what was there."""
    with _LOCK:
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def import_onnxruntime() -> ModuleType:
    """The module ``onnxruntime``, with telemetry off.

    The variable stops everything, also a device id in the home directory, if onnxruntime was not imported before;
    the call stops later events in any case.

    Raises:
        ImportError: It is not installed.
    """
    with environment(ORT_DISABLE_TELEMETRY="1"):
        module = importlib.import_module("onnxruntime")
    module.disable_telemetry_events()
    return module
