"""A stand-in for Letta's server in this process: the endpoints that the adapter uses, with their traps.

It answers on loopback and asks the same model endpoints as the real server. What it reproduces of it, and what the
contract and the tests that run against both hold it to: the conversation search (a substring with wildcards, newest
first, no ids, results that JSON messages overwrite, answers cut off when they are long), the frequency of the
background agent (5 unless set), the prompt of a group without history, runs that complete although a tool call failed,
one tool call a step, blocks and tools in varying order, agent files without conversation and passages, and deletions
that leave blocks and archives behind.
"""

import base64
import copy
import json
import random
import re
import struct
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import numpy as np

Json = dict[str, Any]
_TIME = "%Y-%m-%d %I:%M:%S %p UTC+0000"
_RETURN_LIMIT = 50_000
_PROMPT = (
    "<system-reminder>\nYou are a sleeptime agent - a background agent that asynchronously processes conversations "
    "after they occur.\n\nYour primary role is memory management.\n</system-reminder>\n\nMessages:\n"
)
_SLEEPTIME_TOOLS = ("memory_finish_edits", "memory_insert", "memory_replace", "memory_rethink")
_FOREGROUND_TOOLS = ("archival_memory_search", "conversation_search", "send_message")
_PARAMETERS = {
    "memory_insert": {"label", "new_string", "insert_line"},
    "memory_replace": {"label", "old_string", "new_string"},
    "memory_rethink": {"label", "new_memory"},
    "archival_memory_insert": {"content", "tags"},
    "memory_finish_edits": set(),
}


class HTTPError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class FakeLetta:
    """The server. All its state is in dictionaries by id."""

    def __init__(self, password: str | None = None) -> None:
        self.version = "0.16.8"
        self.password = password
        self.agents: dict[str, Json] = {}
        self.blocks: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        self.archives: dict[str, Json] = {}
        self.runs: dict[str, Json] = {}
        self.tools = {f"tool-{uuid.uuid4()}": name for name in (*_FOREGROUND_TOOLS, *_PARAMETERS)}
        self.tools_written = 0
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda call: None
        self.lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self._background: list[threading.Thread] = []

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for thread in self._background:
            thread.join()

    def serve(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        self.calls.append(f"{method} {path}")
        self.before(f"{method} {path}")
        for pattern, handler in _ROUTES:
            found = re.fullmatch(pattern, f"{method} {path}")
            if found:
                with self.lock:
                    return handler(self, *found.groups(), query=query, body=body)
        raise HTTPError(404, f"no such endpoint: {method} {path}")

    def health(self, query: Json, body: Any) -> Any:
        return {"version": self.version, "status": "ok"}

    def create_agent(self, query: Json, body: Json) -> Any:
        blocks = [self._new_block(block) for block in body["memory_blocks"]]
        agent = self._new_agent(body["name"], body["agent_type"], blocks, body, _FOREGROUND_TOOLS)
        if body.get("enable_sleeptime"):
            persona = self._new_block({"label": "memory_persona", "value": "I manage the memory blocks."})
            own = self._new_agent(body["name"] + "-sleeptime", "sleeptime_agent", [*blocks, persona], body, ())
            own["tools"] = list(_SLEEPTIME_TOOLS)
            self._new_group([own["id"]], agent["id"], 5)
        return self._agent_view(agent)

    def list_agents(self, query: Json, body: Any) -> Any:
        return _page([self._agent_view(agent) for agent in self.agents.values()], query)

    def list_all_blocks(self, query: Json, body: Any) -> Any:
        return _page(list(self.blocks.values()), query)

    def list_archives(self, query: Json, body: Any) -> Any:
        shown = ("id", "name", "embedding_config")
        return _page([{k: archive[k] for k in shown} for archive in self.archives.values()], query)

    def retrieve_agent(self, agent_id: str, query: Json, body: Any) -> Any:
        return self._agent_view(self._agent(agent_id))

    def delete_agent(self, agent_id: str, query: Json, body: Any) -> Any:
        self._agent(agent_id)
        for group in [g for g in self.groups.values() if g["manager_agent_id"] == agent_id]:
            del self.groups[group["id"]]
            for member in group["agent_ids"]:
                self.agents.pop(member, None)
        del self.agents[agent_id]  # its blocks and archives stay
        return None

    def delete_block(self, block_id: str, query: Json, body: Any) -> Any:
        if self.blocks.pop(block_id, None) is None:
            raise HTTPError(404, "no such block")
        return None

    def create_group(self, query: Json, body: Json) -> Any:
        manager = body["manager_config"]
        return self._new_group(body["agent_ids"], manager["manager_agent_id"], manager.get("sleeptime_agent_frequency"))

    def delete_group(self, group_id: str, query: Json, body: Any) -> Any:
        del self.groups[group_id]
        return None

    def list_tools(self, query: Json, body: Any) -> Any:
        named = query.get("name")
        found = _page([self._tool(id_, name) for id_, name in self.tools.items() if named in (None, name)], query)
        if "after" not in query and len(found) < len(self.tools):
            self.tools_written += 1  # it takes the rest for lost, and writes all of its tools anew
        return found

    def attach_tool(self, agent_id: str, tool_id: str, query: Json, body: Any) -> Any:
        self._agent(agent_id)["tools"].append(self.tools[tool_id])
        return self._agent_view(self._agent(agent_id))

    def create_archive(self, query: Json, body: Json) -> Any:
        archive: Json = {
            "id": f"archive-{uuid.uuid4()}",
            "name": body["name"],
            "embedding_config": body["embedding_config"],
        }
        self.archives[archive["id"]] = {**archive, "passages": []}
        return {**archive, "created_at": _now().isoformat(), "vector_db_provider": "native"}

    def attach_archive(self, agent_id: str, archive_id: str, query: Json, body: Any) -> Any:
        self._agent(agent_id)["archive"] = archive_id
        return None

    def delete_archive(self, archive_id: str, query: Json, body: Any) -> Any:
        del self.archives[archive_id]
        return None

    def create_passages(self, archive_id: str, query: Json, body: Json) -> Any:
        archive = self.archives[archive_id]
        vectors = self._embed(archive["embedding_config"], [p["text"] for p in body["passages"]])
        made = [
            _passage(p["text"], p.get("tags"), p.get("created_at") or _now().isoformat(), vector)
            for p, vector in zip(body["passages"], vectors, strict=True)
        ]
        archive["passages"] += made
        return made

    def list_passages(self, agent_id: str, query: Json, body: Any) -> Any:
        passages = sorted(self._passages(agent_id), key=lambda p: p["created_at"])
        return _page(passages, query)

    def search_passages(self, agent_id: str, query: Json, body: Any) -> Any:
        passages = self._passages(agent_id)
        (wanted,) = self._embed(self._agent(agent_id)["embedding_config"], [query["query"]])
        near = np.array([p["embedding"] for p in passages]).reshape(len(passages), len(wanted)) @ np.array(wanted)
        best = [passages[i] for i in np.argsort(-near, kind="stable")[: int(query["top_k"])]]
        results = [{"id": p["id"], "content": p["text"], "tags": p["tags"], "timestamp": p["created_at"]} for p in best]
        return {"count": len(results), "results": results}

    def list_blocks(self, agent_id: str, query: Json, body: Any) -> Any:
        found = [self.blocks[id_] for id_ in self._agent(agent_id)["block_ids"]]
        return _page(sorted(found, key=lambda block: str(block["id"])), query)  # by random ids: the order varies

    def list_messages(self, agent_id: str, query: Json, body: Any) -> Any:
        shown = [view for message in self._agent(agent_id)["messages"] if (view := _message_view(message))]
        return _page(shown, query)

    def capture(self, agent_id: str, query: Json, body: Json) -> Any:
        agent = self._agent(agent_id)
        made = [_message("user", m["content"]) for m in body["request_messages"] if m["role"] == "user"]
        made.append(_message("assistant", body["response_dict"]["content"]))
        for message in made:
            _check_storable(message["content"][0]["text"])
        agent["messages"] += made
        runs: list[str] | None = []
        for group in [g for g in self.groups.values() if g["manager_agent_id"] == agent_id]:
            runs = self._run_group(group, agent, made)
        return {"success": True, "messages_created": len(made), "run_ids": runs}

    def _run_group(self, group: Json, agent: Json, made: list[Json]) -> list[str] | None:
        frequency = group["sleeptime_agent_frequency"]
        if frequency:
            group["turns_counter"] = (group["turns_counter"] + 1) % frequency
            if group["turns_counter"] % frequency:
                return None
        last, group["last_processed_message_id"] = group["last_processed_message_id"], made[-1]["id"]
        prior: list[Json] = []
        if frequency:
            before = agent["messages"][: -len(made)]
            start = next((n + 1 for n, m in enumerate(before) if m["id"] == last), 0)
            prior = before[start : start + 50]
        said = [f"{m['role']}: {m['content'][0]['text']}" for m in [*prior, *made] if m["role"] != "system"]
        runs = []
        for member in group["agent_ids"]:
            run = {"id": f"run-{uuid.uuid4()}", "agent_id": member, "status": "created", "stop_reason": None}
            self.runs[run["id"]] = run
            runs.append(run["id"])
            thread = threading.Thread(target=self._background_run, args=(run, member, _PROMPT + "\n".join(said)))
            thread.start()
            self._background.append(thread)
        return runs

    def _background_run(self, run: Json, agent_id: str, prompt: str) -> None:
        try:
            with self.lock:
                run["status"] = "running"
                agent = self._agent(agent_id)
                agent["messages"].append(_message("user", prompt))
            run["stop_reason"] = next((r for _ in range(50) if (r := self._step(agent))), "max_steps")
            run["status"] = "completed"
        except Exception as error:
            run.update(status="failed", stop_reason="error", metadata={"error": str(error)})

    def _step(self, agent: Json) -> str | None:
        """One request and one tool call; the reason why the agent stops, if it does."""
        request = {
            "model": agent["llm_config"]["model"],
            "messages": [_wire(message) for message in agent["messages"]],
            "tools": [_schema(name) for name in random.sample(agent["tools"], len(agent["tools"]))],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "temperature": agent["llm_config"]["temperature"],
        }
        answer = _post(agent["llm_config"]["model_endpoint"] + "/chat/completions", request)
        message = answer["choices"][0]["message"]
        calls = (message.get("tool_calls") or [])[:1]
        made = {**_message("assistant", message.get("content") or ""), "tool_calls": calls or None}
        with self.lock:
            agent["messages"].append(made)
            if not calls:
                return "end_turn"
            name = calls[0]["function"]["name"]
            status, said = self._execute(agent, name, calls[0]["function"]["arguments"])
            text = json.dumps({"status": status, "message": said, "time": _now().strftime(_TIME)}, indent=2)
            returned = {"tool_call_id": calls[0]["id"], "status": "success" if status == "OK" else "error"}
            agent["messages"].append(
                {**_message("tool", text), "name": name, "tool_call_id": calls[0]["id"], "tool_returns": [returned]}
            )
        return "tool_rule" if name == "memory_finish_edits" and status == "OK" else None

    def _execute(self, agent: Json, name: str, arguments: str) -> tuple[str, str]:
        try:
            given = json.loads(arguments)
            unknown = set(given) - _PARAMETERS[name]
            if unknown:
                raise TypeError(f"{name}() got an unexpected keyword argument {sorted(unknown)[0]!r}")
            return "OK", str(getattr(self, f"_tool_{name}")(agent, **given))
        except Exception as error:
            return "Failed", f"Error executing function {name}: {type(error).__name__}: {error}"

    def _tool_memory_finish_edits(self, agent: Json) -> None:
        return None

    def _tool_memory_insert(self, agent: Json, label: str, new_string: str, insert_line: int = -1) -> str:
        block = self._labelled(agent, label)
        lines = block["value"].expandtabs().split("\n")
        if insert_line == -1:
            insert_line = len(lines)
        elif not 0 <= insert_line <= len(lines):
            raise ValueError(f"Invalid `insert_line` parameter: {insert_line}.")
        return self._set(
            block, "\n".join(lines[:insert_line] + new_string.expandtabs().split("\n") + lines[insert_line:])
        )

    def _tool_memory_replace(self, agent: Json, label: str, old_string: str, new_string: str) -> str:
        block = self._labelled(agent, label)
        if block["value"].count(old_string) != 1:
            raise ValueError(f"No replacement was performed, old_string `{old_string}` did not appear once in {label}.")
        return self._set(block, block["value"].replace(old_string, new_string))

    def _tool_memory_rethink(self, agent: Json, label: str, new_memory: str) -> str:
        return self._set(self._labelled(agent, label), new_memory)

    def _tool_archival_memory_insert(self, agent: Json, content: str, tags: list[str] | None = None) -> None:
        _check_storable(content)
        (vector,) = self._embed(agent["embedding_config"], [content])
        self._passages(agent["id"]).append(_passage(content, tags, _now().isoformat(), vector))
        self._compile(agent)

    def _labelled(self, agent: Json, label: str) -> Json:
        for id_ in agent["block_ids"]:
            if self.blocks[id_]["label"] == label:
                return self.blocks[id_]
        raise KeyError(f"Block field {label} does not exist")

    def _set(self, block: Json, value: str) -> str:
        if len(value) > block["limit"]:
            raise ValueError(f"Edit failed: Exceeds {block['limit']} character limit (requested {len(value)})")
        block["value"] = value
        return value

    def run_tool(self, agent_id: str, name: str, query: Json, body: Json) -> Any:
        assert name == "conversation_search"
        given = body["args"]
        pattern = re.compile(_ilike(given["query"]), re.IGNORECASE | re.DOTALL)
        found = [
            message
            for message in reversed(self._agent(agent_id)["messages"])
            if message["role"] in given["roles"] and pattern.search(message["content"][0]["text"])
        ][: given["limit"]]
        results = [_search_result(message) for message in found]
        returned: Any = {"message": f"Showing {len(found)} results:", "results": results}
        if not found:
            returned = {"message": "No results found.", "results": []}
        text = json.dumps(returned)
        if len(text) > _RETURN_LIMIT:
            returned = f"{text[:_RETURN_LIMIT]}... [NOTE: function output was truncated]"
        return {"status": "success", "func_return": returned, "stdout": None, "stderr": None}

    def export(self, agent_id: str, query: Json, body: Any) -> Any:
        groups = [g for g in self.groups.values() if g["manager_agent_id"] == agent_id]
        agents = [self._agent(id_) for id_ in (agent_id, *(m for g in groups for m in g["agent_ids"]))]
        names: dict[str, str] = {agent["id"]: f"agent-{n}" for n, agent in enumerate(agents)}
        used = sorted({id_ for agent in agents for id_ in agent["block_ids"]})
        names |= {id_: f"block-{n}" for n, id_ in enumerate(used)}
        counter = 0
        exported = []
        for agent in agents:
            messages = []
            for message in _in_context(agent):
                messages.append({**copy.deepcopy(message), "id": f"message-{counter}", "agent_id": names[agent["id"]]})
                counter += 1
            exported.append(
                {
                    **{k: agent[k] for k in ("name", "agent_type", "llm_config", "embedding_config", "tools")},
                    "id": names[agent["id"]],
                    "block_ids": [names[id_] for id_ in agent["block_ids"]],
                    "messages": messages,
                    "in_context_message_ids": [message["id"] for message in messages],
                }
            )
        return {
            "agents": exported,
            "groups": [
                {
                    "id": f"group-{n}",
                    "agent_ids": [names[id_] for id_ in group["agent_ids"]],
                    "manager_config": {
                        "manager_agent_id": names[group["manager_agent_id"]],
                        "sleeptime_agent_frequency": group["sleeptime_agent_frequency"],
                    },
                }
                for n, group in enumerate(groups)
            ],
            "blocks": [{**self.blocks[id_], "id": names[id_]} for id_ in used],
        }

    def import_agents(self, query: Json, body: Json) -> Any:
        file = body
        blocks = {block["id"]: self._new_block(block) for block in file["blocks"]}
        ids: dict[str, str] = {}
        for given in file["agents"]:
            mine = [blocks[id_] for id_ in given["block_ids"]]
            agent = self._new_agent(given["name"], given["agent_type"], mine, given, given["tools"])
            ids[given["id"]] = agent["id"]
            for message in given["messages"]:
                if not re.fullmatch(r"message-\d+", message["id"]):
                    raise HTTPError(400, f"Invalid ID format: {message['id']}")
            numbers = [message["id"] for message in given["messages"]]
            if len(set(numbers)) != len(numbers):
                raise HTTPError(400, "Duplicate message IDs")
            known = set(given["in_context_message_ids"])
            agent["messages"] = [
                {
                    **_message(m["role"], m["content"][0]["text"]),
                    **{k: m[k] for k in ("tool_calls", "tool_returns", "tool_call_id", "name") if k in m},
                    "created_at": m["created_at"],
                    "in_context": m["id"] in known,
                }
                for m in given["messages"]
            ]
        for group in file["groups"]:
            manager = group["manager_config"]
            members = [ids[id_] for id_ in group["agent_ids"]]
            self._new_group(members, ids[manager["manager_agent_id"]], manager["sleeptime_agent_frequency"])
        return {"agent_ids": list(ids.values())}

    def retrieve_run(self, run_id: str, query: Json, body: Any) -> Any:
        return dict(self.runs[run_id])

    def _agent(self, agent_id: str) -> Json:
        if agent_id not in self.agents:
            raise HTTPError(404, "no such agent")
        return self.agents[agent_id]

    def _passages(self, agent_id: str) -> list[Json]:
        found: list[Json] = self.archives[self._agent(agent_id)["archive"]]["passages"]
        return found

    def _new_block(self, given: Json) -> Json:
        block = {"limit": 100_000, "read_only": False, **given, "id": f"block-{uuid.uuid4()}"}
        self.blocks[block["id"]] = block
        return block

    def _new_group(self, members: list[str], manager: str, frequency: int | None) -> Json:
        group: Json = {
            "id": f"group-{uuid.uuid4()}",
            "agent_ids": members,
            "description": "",
            "manager_type": "sleeptime",
            "manager_agent_id": manager,
            "sleeptime_agent_frequency": frequency,
            "turns_counter": -1 if frequency else None,
            "last_processed_message_id": None,
        }
        self.groups[group["id"]] = group
        return group

    def _new_agent(self, name: str, kind: str, blocks: list[Json], given: Json, tools: Any) -> Json:
        agent: Json = {
            "id": f"agent-{uuid.uuid4()}",
            "name": name,
            "agent_type": kind,
            "block_ids": [block["id"] for block in blocks],
            "llm_config": given["llm_config"],
            "embedding_config": given["embedding_config"],
            "tools": list(tools),
            "archive": None,
            "messages": [{**_message("system", ""), "in_context": True}],
        }
        self.agents[agent["id"]] = agent
        self._compile(agent)
        return agent

    def _compile(self, agent: Json) -> None:
        # By random ids, as the real server's order is random.
        values = [(self.blocks[id_]["label"], self.blocks[id_]["value"]) for id_ in sorted(agent["block_ids"])]
        blocks = "\n\n".join(
            f"<{label}>\n<description>\n\n</description>\n<value>\n{value}\n</value>\n</{label}>"
            for label, value in values
        )
        agent["messages"][0]["content"][0]["text"] = (
            f"<memory_blocks>\n\n{blocks}\n\n</memory_blocks>\n\n<memory_metadata>\n- AGENT_ID: {agent['id']}\n"
            f"- System prompt last recompiled: {_now().strftime(_TIME)}\n</memory_metadata>"
        )

    def _agent_view(self, agent: Json) -> Json:
        group = next((g for g in self.groups.values() if g["manager_agent_id"] == agent["id"]), None)
        return {
            **{k: agent[k] for k in ("id", "name", "agent_type", "llm_config", "embedding_config")},
            "managed_group": group,
            "blocks": [],
            "tools": [],
        }

    def _tool(self, id_: str, name: str) -> Json:
        return {"id": id_, "name": name, "tool_type": "letta_core"}

    def _embed(self, config: Json, texts: list[str]) -> list[list[float]]:
        request = {"model": config["embedding_model"], "input": texts, "encoding_format": "base64"}
        rows = _post(config["embedding_endpoint"] + "/embeddings", request)["data"]
        return [list(struct.unpack(f"<{config['embedding_dim']}f", base64.b64decode(row["embedding"]))) for row in rows]


def _page(items: list[Json], query: Json) -> list[Json]:
    start = next((n + 1 for n, item in enumerate(items) if item["id"] == query.get("after")), 0)
    return items[start : start + int(query.get("limit", 50))]


def _in_context(agent: Json) -> list[Json]:
    captured = agent["agent_type"] != "sleeptime_agent"
    return [m for m in agent["messages"] if not captured or m["role"] == "system"]


def _now() -> datetime:
    return datetime.now(UTC)


def _message(role: str, text: str) -> Json:
    return {
        "id": f"message-{uuid.uuid4()}",
        "role": role,
        "content": [{"type": "text", "text": text}],
        "created_at": _now().isoformat(),
        "group_id": None,
    }


def _passage(text: str, tags: Any, created_at: str, vector: list[float]) -> Json:
    padded = [*vector, *[0.0] * (4096 - len(vector))]
    return {
        "id": f"passage-{uuid.uuid4()}",
        "text": text,
        "tags": tags,
        "created_at": created_at,
        "embedding": np.array(padded, dtype=np.float32).tolist()[: len(vector)],
    }


def _check_storable(text: str) -> None:
    if "\x00" in text:
        raise HTTPError(500, "An unknown error occurred")
    text.encode("utf-8")


def _message_view(message: Json) -> Json | None:
    kinds = {"system": "system_message", "user": "user_message", "assistant": "assistant_message"}
    if message["role"] not in kinds:
        return None
    text = message["content"][0]["text"]
    if message["role"] == "user":
        text = _unpacked(text)
    return {
        "id": message["id"],
        "message_type": kinds[message["role"]],
        "content": text,
        "date": message["created_at"],
    }


def _unpacked(text: str) -> str:
    try:
        packed = json.loads(text)
    except ValueError:
        return text
    if not isinstance(packed, dict) or packed.get("type") != "user_message":
        return text
    return str(packed.get("message", text))


def _search_result(message: Json) -> Json:
    result: Json = {
        "timestamp": message["created_at"],
        "time_ago": "1s ago",
        "role": message["role"],
        "relevance": {"search_mode": "sql"},
    }
    text = message["content"][0]["text"]
    try:
        content = json.loads(text)
    except ValueError:
        content = {"content": text}
    if isinstance(content, dict):
        result.update(content)
    else:
        result["content"] = content
    return result


def _ilike(query: str) -> str:
    parts = re.findall(r"\\.|.", query, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return "".join(wild.get(part) or re.escape(part[-1]) for part in parts)


def _wire(message: Json) -> Json:
    wire = {"role": message["role"], "content": message["content"][0]["text"]}
    if message.get("tool_calls"):
        wire |= {"content": None, "tool_calls": message["tool_calls"]}
    if message.get("tool_call_id"):
        wire["tool_call_id"] = message["tool_call_id"]
    return wire


def _schema(name: str) -> Json:
    properties = {parameter: {"type": "string"} for parameter in sorted(_PARAMETERS[name])}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


def _post(url: str, body: Json) -> Json:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer none"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: Json = json.load(response)
            return answer
    except urllib.error.HTTPError as error:
        with error:
            raise HTTPError(500, f"LLM error: {error.read().decode()[:300]}") from error


_ID = r"([a-z]+-[0-9a-f-]+)"
_ROUTES: list[tuple[str, Callable[..., Any]]] = [
    (r"GET /v1/health/", FakeLetta.health),
    (r"GET /v1/agents/", FakeLetta.list_agents),
    (r"GET /v1/blocks/", FakeLetta.list_all_blocks),
    (r"GET /v1/archives/", FakeLetta.list_archives),
    (r"POST /v1/agents/", FakeLetta.create_agent),
    (r"POST /v1/agents/import", FakeLetta.import_agents),
    (rf"GET /v1/agents/{_ID}", FakeLetta.retrieve_agent),
    (rf"DELETE /v1/agents/{_ID}", FakeLetta.delete_agent),
    (rf"GET /v1/agents/{_ID}/export", FakeLetta.export),
    (rf"PATCH /v1/agents/{_ID}/tools/attach/{_ID}", FakeLetta.attach_tool),
    (rf"PATCH /v1/agents/{_ID}/archives/attach/{_ID}", FakeLetta.attach_archive),
    (rf"POST /v1/agents/{_ID}/tools/(\w+)/run", FakeLetta.run_tool),
    (rf"GET /v1/agents/{_ID}/core-memory/blocks", FakeLetta.list_blocks),
    (rf"GET /v1/agents/{_ID}/messages", FakeLetta.list_messages),
    (rf"POST /v1/agents/{_ID}/messages/capture", FakeLetta.capture),
    (rf"GET /v1/agents/{_ID}/archival-memory", FakeLetta.list_passages),
    (rf"GET /v1/agents/{_ID}/archival-memory/search", FakeLetta.search_passages),
    (rf"DELETE /v1/blocks/{_ID}", FakeLetta.delete_block),
    (r"POST /v1/groups/", FakeLetta.create_group),
    (rf"DELETE /v1/groups/{_ID}", FakeLetta.delete_group),
    (r"GET /v1/tools/", FakeLetta.list_tools),
    (r"POST /v1/archives/", FakeLetta.create_archive),
    (rf"DELETE /v1/archives/{_ID}", FakeLetta.delete_archive),
    (rf"POST /v1/archives/{_ID}/passages/batch", FakeLetta.create_passages),
    (rf"GET /v1/runs/{_ID}", FakeLetta.retrieve_run),
]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: ClassVar[FakeLetta]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        password = self.fake.password
        try:
            if password is not None and self.headers.get("Authorization") != f"Bearer {password}":
                raise HTTPError(401, "Unauthorized")
            status, answer = 200, self.fake.serve(self.command, parts.path, query, self._body(raw))
        except ConnectionAbortedError:  # a server that dies in the middle of a call
            self.close_connection = True
            return
        except HTTPError as error:
            status, answer = error.status, {"detail": error.detail}
        except Exception as error:
            status, answer = 500, {"detail": f"{type(error).__name__}: {error}"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _body(self, raw: bytes) -> Any:
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            return json.loads(raw) if raw else None
        parsed = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw)
        for part in parsed.walk():
            if part.get_filename():
                return json.loads(bytes(part.get_payload(decode=True)))
        raise HTTPError(400, "no file")
