import pytest

from memorydojo.adapters.amem import AMemAdapter
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.adapters.graphiti import GraphitiAdapter
from memorydojo.adapters.mem0 import Mem0Adapter
from memorydojo.adapters.memora import MemoraAdapter
from memorydojo.adapters.vector import VectorAdapter
from memorydojo.testing import AdapterContract


class TestFullContext(AdapterContract):
    adapter = FullContextAdapter


class TestVector(AdapterContract):
    adapter = VectorAdapter


@pytest.mark.slow
class TestMem0(AdapterContract):
    adapter = Mem0Adapter


@pytest.mark.slow
class TestAMem(AdapterContract):
    adapter = AMemAdapter


@pytest.mark.slow
class TestGraphiti(AdapterContract):
    adapter = GraphitiAdapter


class TestMemora(AdapterContract):
    adapter = MemoraAdapter
    removes_entries = True  # cues that lead to no fact any more
