"""A real gateway in front of the scripted server, and the unmodified `openai` client to ask it with."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from memorydojo.models.config import Backend, Capabilities, Limits, Model, Models
from memorydojo.models.gateway import Gateway

KEY = "sk-very-secret-0123456789abcdef"
FAST = Limits(
    retries=2, first_backoff_seconds=0.001, max_backoff_seconds=0.002, timeout_seconds=0.5, connect_seconds=0.5
)
MESSAGES: list[Any] = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]


class AskedGateway(Gateway):
    """A gateway with short ways to ask it."""

    def client(self, run: str = "run-1", role: str = "agent") -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url(run=run, role=role), api_key=self.secret, max_retries=0)

    def ask(self, run: str = "run-1", **more: Any) -> Any:
        with self.client(run) as c:
            return c.chat.completions.create(**{"model": "m", "messages": MESSAGES, **more})

    def ask_stream(self, **more: Any) -> list[Any]:
        with self.client() as c:
            return list(c.chat.completions.create(**{"model": "m", "messages": MESSAGES, "stream": True, **more}))

    def raw(self, path: str = "chat/completions", *, secret: str | None = None, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.secret if secret is None else secret}"}
        return httpx.post(f"{self.url(run='run-1', role='agent')}/{path}", headers=headers, **more)


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def limits() -> Limits:
    """Limits with hardly any waits."""
    return FAST


@pytest.fixture
def make(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AskedGateway]]:
    """Makes gateways with one model, ``m``, on the scripted server."""
    monkeypatch.setenv("TEST_KEY", KEY)
    made: list[AskedGateway] = []

    def build(
        *, capabilities: Capabilities | None = None, limits: Limits = FAST, model: Any = None, **more: Any
    ) -> AskedGateway:
        backend = Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=limits, capabilities=capabilities)
        models = Models(backends={"b": backend}, models={"m": Model(backend="b", **(model or {}))})
        made.append(AskedGateway(models, **more))
        return made[-1]

    yield build
    for gateway in made:
        gateway.close()
