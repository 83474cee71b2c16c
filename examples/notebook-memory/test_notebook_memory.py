from notebook_memory import NotebookMemory

from memorydojo.testing import AdapterContract


class TestNotebookMemory(AdapterContract):
    adapter = NotebookMemory
