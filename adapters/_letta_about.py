"""What Letta is and how it was set up, for the saved run, its readers and the optimizer."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from memorydojo.adapter import MemoryDescription
from memorydojo.models.base import MemoryModels

if TYPE_CHECKING:
    from memorydojo.adapters.letta import LettaConfig


def description(config: "LettaConfig", models: MemoryModels) -> MemoryDescription:
    """Versions and settings, and what in this set-up is not as in Letta's own."""
    prompts = "with the session's time, a constant agent id and the blocks by label"
    if not config.repeatable_prompts:
        prompts = "as Letta makes them, with the machine's time, a random agent id and the blocks in random order"
    return MemoryDescription(
        name="letta",
        versions={"letta": "0.16.8", "letta-client": version("letta-client")},
        settings={**config.model_dump(mode="json"), "temperature": 0.1},
        modes={
            "integration": "external agent: captured messages, a sleep-time agent after every capture",
            "conversation_search": "sql: the whole query as a substring, newest first",
            "archival_search": "vectors (pgvector, cosine)",
            "chat_model": models.chat_model,
            "embedding_model": models.embedding_model,
            "prompts": prompts,
        },
        limits=(
            "A self-hosted Letta searches the conversation for the whole query as a substring (ILIKE, where % and "
            "_ match anything), so a task request usually finds nothing there.",
            "A capture holds user messages and one assistant message: tool calls and observations are told in the "
            "assistant's text.",
            "The background agent gets the tool archival_memory_insert and an archive, which Letta's own set-up "
            "for external agents leaves out.",
            "The background agent runs after every capture (Letta's default is every fifth).",
            "A tool call of the background agent that fails does not fail the write; the outcome of each call "
            "(since the agent last summed up its context) is in the metadata of the session's messages.",
            "The background agent's own context (prompts, tool calls and their results) is no entry: it is never "
            "delivered. It is kept and continues in forks.",
            "PostgreSQL stores no NUL character; it is replaced by U+FFFD.",
            "Ids are counted, not Letta's random ones. Letta 0.16.8 is its last server and no longer maintained.",
        ),
        writes="The task request and a transcript of the session, observations included, are stored word for word "
        "as two messages; then a background agent (a language model with memory tools) reads them and edits the "
        "core blocks and the archival memory in its own words.",
        stores="Core blocks (short texts that are always visible), archival passages with one embedding each, and "
        "the captured messages word for word.",
        retrieves="Every core block that is not empty; messages that contain the whole task request; passages "
        "by embedding similarity to the task request.",
        presents="First the core blocks, then up to conversation_k messages, newest first, then up to archival_k "
        "passages, most similar first.",
    )
