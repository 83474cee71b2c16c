"""A memory system in a package of its own: a language model writes one page of notes a session."""

import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import memorydojo as md
from memorydojo.errors import InvalidInputError, MemorySystemError, ModelError
from memorydojo.models.base import MemoryModels
from memorydojo.simulator.extraction import extract
from memorydojo.simulator.transcript import lines

ASK = "Write down, one line each, what is worth remembering of this session:\n\n"


class NotebookConfig(md.AdapterConfig):
    """Settings.

    Attributes:
        top_k: How many pages are delivered at most.
    """

    top_k: int = 5


class NotebookMemory(md.MemoryAdapter):
    """Keeps the pages in one file, which a write replaces as a whole: it is stored completely or not at all."""

    name = "notebook"
    Config = NotebookConfig

    def __init__(self, directory: Path, models: MemoryModels, config: NotebookConfig) -> None:
        self._file, self._models, self._config = directory / "pages.json", models, config
        self._lock, self._closed = threading.Lock(), False
        self._pages: dict[str, str] = json.loads(self._file.read_text()) if self._file.exists() else {}

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the notebook in a directory."""
        return cls(directory, models, config)

    def write(self, record: md.SessionRecord) -> None:
        """Lets the model write a page about the session."""
        with self._lock:
            self._check_open("write")
            said = [{"role": "user", "content": ASK + record.transcript().encode(errors="replace").decode()}]
            try:
                answer = self._models.chat({"messages": said, "temperature": 0})
            except ModelError as error:
                # Never swallowed: a session that was not stored must not look like one that was.
                raise MemorySystemError(
                    self.name, "write", str(error), "Check the model endpoint, then run the session again."
                ) from error
            pages = {**self._pages, record.id: answer["choices"][0]["message"]["content"]}
            partial = self._file.with_suffix(".partial")
            partial.write_text(json.dumps(pages))
            os.replace(partial, self._file)
            self._pages = pages

    def retrieve(self, query: str) -> list[md.MemoryItem]:
        """The pages that share most words with the query."""
        with self._lock:
            self._check_open("retrieve")
            ranked = sorted(self._pages.items(), key=lambda page: (-_shared(query, page[1]), page[0]))
            return [
                md.MemoryItem(entry_ids=(id_,), text=text, kind="page", rank=rank, score=_shared(query, text))
                for rank, (id_, text) in enumerate(ranked[: self._config.top_k])
            ]

    def snapshot(self) -> md.Snapshot:
        """All pages. Whatever text the memory holds has to be here, or its poison is not found."""
        return md.Snapshot(entries={i: md.MemoryEntry(id=i, kind="page", text=t) for i, t in self._pages.items()})

    def checkpoint(self, target: Path) -> None:
        """Copies the file."""
        if target.exists() and any(target.iterdir()):
            raise InvalidInputError(f"{target} is not empty; give a new directory")
        target.mkdir(exist_ok=True)
        (target / self._file.name).write_text(json.dumps(self._pages))

    def describe(self) -> md.MemoryDescription:
        """What a reader of a published table has to know."""
        return md.MemoryDescription(
            name=self.name,
            settings=self._config.model_dump(mode="json"),
            modes={"chat_model": self._models.chat_model},
            limits=("Pages are found by common words only.",),
            writes="The whole session goes to a language model, which writes one page of notes.",
            stores="One page for each session.",
            retrieves="Pages that share words with the task request.",
            presents="The best pages, best first.",
        )

    def close(self) -> None:
        """Ends the use."""
        self._closed = True

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """The offline model: the lasting facts of the session by MemoryDojo's stated rules."""
        session = request["messages"][-1]["content"].removeprefix(ASK)
        facts = [fact.text for fact in extract(lines(session))]
        return {"role": "assistant", "content": "\n".join(facts) or "Nothing."}

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise MemorySystemError(self.name, call, "the notebook is closed", "Open the directory again.")


def _shared(query: str, text: str) -> float:
    return float(len(_words(query) & _words(text)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))
