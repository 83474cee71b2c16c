"""The contract suite on a correct toy adapter and on copies of it that break one behaviour each."""

import json
import uuid
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from pydantic import ConfigDict

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.errors import InvalidInputError, MemorySystemError, ModelError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot
from memorydojo.testing import AdapterContract


class Toy(MemoryAdapter):
    """Keeps sessions in one JSON file and embeds each, so that it depends on a model."""

    name = "toy"

    def __init__(self, directory: Path, models: MemoryModels) -> None:
        self.file, self.models, self.closed = directory / "toy.json", models, False
        self.texts: dict[str, str] = json.loads(self.file.read_text()) if self.file.exists() else {}

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        return cls(directory, models)

    def write(self, record: SessionRecord) -> None:
        self.check("write")
        text = record.transcript().encode(errors="replace").decode()
        try:
            self.models.embed([text])
        except ModelError as error:
            raise MemorySystemError(self.name, "write", str(error), "Try again.") from error
        self.texts[record.id] = text
        self.file.write_text(json.dumps(self.texts))

    def retrieve(self, query: str) -> list[MemoryItem]:
        self.check("retrieve")
        return [
            MemoryItem(entry_ids=(id_,), text=text, kind="session", rank=rank)
            for rank, (id_, text) in enumerate(self.texts.items())
        ]

    def snapshot(self) -> Snapshot:
        return Snapshot(entries={id_: MemoryEntry(id=id_, kind="session", text=t) for id_, t in self.texts.items()})

    def checkpoint(self, target: Path) -> None:
        if target.exists() and any(target.iterdir()):
            raise InvalidInputError(f"{target} is not empty")
        target.mkdir(exist_ok=True)
        (target / "toy.json").write_text(json.dumps(self.texts))

    def describe(self) -> MemoryDescription:
        return MemoryDescription(name=self.name, writes="prose", stores="text", retrieves="all", presents="in order")

    def close(self) -> None:
        self.closed = True

    def check(self, call: str) -> None:
        if self.closed:
            raise MemorySystemError(self.name, call, "it is closed", "Open it again.")


class TestToy(AdapterContract):
    adapter = Toy


class SharesState(Toy):
    everything: ClassVar[dict[str, str]] = {}

    def __init__(self, directory: Path, models: MemoryModels) -> None:
        super().__init__(directory, models)
        self.everything.clear()
        self.texts = self.everything


class Forgets(Toy):
    def __init__(self, directory: Path, models: MemoryModels) -> None:
        super().__init__(directory, models)
        self.texts = {}


class CopiesNothing(Toy):
    def checkpoint(self, target: Path) -> None:
        target.mkdir(exist_ok=True)


class HidesEntries(Toy):
    def snapshot(self) -> Snapshot:
        return Snapshot(entries=dict(list(super().snapshot().entries.items())[:2]))


class RanksFromOne(Toy):
    def retrieve(self, query: str) -> list[MemoryItem]:
        return [item.model_copy(update={"rank": item.rank + 1}) for item in super().retrieve(query)]


class LearnsFromQueries(Toy):
    def retrieve(self, query: str) -> list[MemoryItem]:
        found = super().retrieve(query)
        self.texts[query] = query
        return found


class RandomIds(Toy):
    def write(self, record: SessionRecord) -> None:
        super().write(record.model_copy(update={"id": str(uuid.uuid4())}))


class RenamesEntries(Toy):
    def write(self, record: SessionRecord) -> None:
        super().write(record)
        self.texts = {f"{id_}+": text for id_, text in self.texts.items()}


class SwallowsFailures(Toy):
    def write(self, record: SessionRecord) -> None:
        try:
            super().write(record)
        except MemorySystemError:
            self.file.touch()


class HarmsOnFailure(Toy):
    def write(self, record: SessionRecord) -> None:
        try:
            super().write(record)
        except MemorySystemError:
            self.texts.clear()
            raise


class ChokesOnControlCharacters(Toy):
    def write(self, record: SessionRecord) -> None:
        if "\x00" in record.transcript():
            raise MemorySystemError(self.name, "write", "a zero byte", "Remove it.")
        super().write(record)


class SavesAscii(Toy):
    def write(self, record: SessionRecord) -> None:
        super().write(record)
        self.file.write_text(json.dumps({i: t.encode("ascii", "ignore").decode() for i, t in self.texts.items()}))


class GoesOnAfterClose(Toy):
    def close(self) -> None:
        self.closed = False


class Loose(AdapterConfig):
    model_config = ConfigDict(extra="ignore")


class TakesAnySetting(Toy):
    Config = Loose


class OverwritesCheckpoints(Toy):
    def checkpoint(self, target: Path) -> None:
        (target / "toy.json").write_text("{}")


class StoresNothing(Toy):
    def snapshot(self) -> Snapshot:
        return Snapshot()


class MisnamesItself(Toy):
    def describe(self) -> MemoryDescription:
        return super().describe().model_copy(update={"name": "somebody else"})


@pytest.mark.parametrize(
    ("broken", "check", "arguments"),
    [
        (SharesState, "test_two_directories_are_isolated", ()),
        (SharesState, "test_two_instances_work_at_once", ()),
        (Forgets, "test_a_memory_is_the_same_after_close_and_reopen", ()),
        (CopiesNothing, "test_forks_and_the_original_go_on_alike", ()),
        (OverwritesCheckpoints, "test_a_checkpoint_never_overwrites", ()),
        (HidesEntries, "test_every_delivered_entry_is_in_the_snapshot", ()),
        (StoresNothing, "test_what_was_written_survives", ()),
        (HidesEntries, "test_threads_that_share_an_instance_lose_nothing", ()),
        (RanksFromOne, "test_ranks_count_from_zero", ()),
        (LearnsFromQueries, "test_retrieval_is_read_only", ()),
        (RandomIds, "test_equal_runs_are_equal", ()),
        (RenamesEntries, "test_ids_are_stable", ()),
        (SwallowsFailures, "test_a_failing_model_is_reported_and_harms_nothing", ()),
        (HarmsOnFailure, "test_a_failing_model_is_reported_and_harms_nothing", ()),
        (ChokesOnControlCharacters, "test_odd_text_is_written_and_read", ("control",)),
        (SavesAscii, "test_odd_text_is_written_and_read", ("emoji",)),
        (GoesOnAfterClose, "test_close_may_be_called_again_and_ends_the_use", ()),
        (TakesAnySetting, "test_an_unknown_setting_is_refused", ()),
        (MisnamesItself, "test_the_description_names_the_adapter_and_its_settings", ()),
    ],
)
def test_the_suite_catches(tmp_path: Path, broken: type[MemoryAdapter], check: str, arguments: tuple[str, ...]) -> None:
    contract = AdapterContract()
    contract.adapter = broken  # type: ignore[misc]
    places = () if check == "test_an_unknown_setting_is_refused" else (tmp_path,)
    with pytest.raises((AssertionError, MemorySystemError, pytest.fail.Exception)):
        getattr(contract, check)(*places, *arguments)
