"""How Memora writes a session: episode, facts, update or create, cues. Nothing is stored here; see `Store.apply`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memorydojo.adapters._memora_requests import MemoryOutput, MemoryUpdateDecision
from memorydojo.adapters._memora_store import Change, Contents, Cue, Episode, Fact, Vector
from memorydojo.adapters._memora_talk import Talk
from memorydojo.adapters._state import unicode
from memorydojo.record import SessionRecord

_TOPIC_CHARACTERS = 80


@dataclass(frozen=True)
class WriteSettings:
    """What decides whether a fact updates another.

    Attributes:
        threshold: Least cosine of two indices at which an update is considered.
        candidates: How many similar facts the model chooses from at most.
    """

    threshold: float
    candidates: int


def planned(record: SessionRecord, contents: Contents, *, talk: Talk, settings: WriteSettings) -> Change:
    """What writing a session changes.

    A fact whose index is there already is dropped. A fact that resembles earlier ones may be merged into one of them,
    as the model decides; facts of one session are never merged with each other.
    """
    episode = _episode(record, contents)
    drafts = _new(talk.facts(record), contents)
    vectors = dict(zip([draft.index for draft in drafts], talk.vectors([d.index for d in drafts]), strict=True))
    earlier = dict(contents.facts)
    changed: list[Fact] = []
    for draft in drafts:
        near = _candidates(vectors[draft.index], earlier, settings)
        decision = talk.decision(draft, near) if near else None
        if decision is not None and decision.should_update:
            old = near[decision.best_candidate_index or 0]
            del earlier[old.id]  # so that no other fact of this session is merged into it
            taken = {f.heading for f in (*contents.facts.values(), *changed)} | {d.index for d in drafts}
            taken -= {old.heading, draft.index}
            changed.append(_merged(old, decision, episode, taken))
        else:
            number = sum(not fact.history for fact in changed) + 1
            id_ = f"fact-{episode.number:04}-{number:03}"
            changed.append(
                Fact(id_, draft.index, draft.value, vectors[draft.index], record.id, episode.time, (episode.number,))
            )
    moved = [fact.heading for fact in changed if fact.history and fact.heading not in vectors]
    vectors.update(zip(moved, talk.vectors(moved), strict=True))
    changed = [replace(fact, vector=vectors[fact.heading]) for fact in changed]
    return _with_cues(episode, changed, contents, talk)


def _episode(record: SessionRecord, contents: Contents) -> Episode:
    topic = " ".join(unicode(record.request).split())[:_TOPIC_CHARACTERS].rstrip() or record.id
    heading = _unique(f"[EPISODIC] {topic} (segment 1)", {episode.heading for episode in contents.episodes})
    text = unicode(record.transcript())
    return Episode(len(contents.episodes) + 1, heading, record.id, record.kind, record.time.isoformat(), text)


def _unique(heading: str, taken: set[str]) -> str:
    """The heading, with a number if there is one like it."""
    count, unique = 1, heading
    while unique in taken:
        count += 1
        unique = f"{heading} ({count})"
    return unique


def _new(entries: Sequence[MemoryOutput], contents: Contents) -> list[MemoryOutput]:
    """Entries with an index that is new, once each."""
    known = {fact.heading for fact in contents.facts.values()}
    first: dict[str, MemoryOutput] = {}
    for entry in entries:
        if entry.index not in known:
            first.setdefault(entry.index, entry)
    return list(first.values())


def _candidates(vector: Vector, earlier: dict[str, Fact], settings: WriteSettings) -> list[Fact]:
    scored = [(float((fact.vector * vector).sum()), fact) for fact in earlier.values()]
    near = [pair for pair in scored if pair[0] >= settings.threshold]
    near.sort(key=lambda pair: -pair[0])  # stable: of equally near ones the earlier first
    return [fact for _, fact in near[: settings.candidates]]


def _merged(old: Fact, decision: MemoryUpdateDecision, episode: Episode, taken: set[str]) -> Fact:
    heading, value = decision.updated_index, decision.updated_value
    assert heading is not None
    assert value is not None
    version = {"index": old.heading, "value": old.value, "session": old.session, "time": old.time}
    return replace(
        old,
        heading=_unique(heading, taken),
        value=value,
        session=episode.session,
        time=episode.time,
        episodes=(*old.episodes, episode.number),
        cues=(),
        history=(*old.history, version),
    )


def _with_cues(episode: Episode, facts: Sequence[Fact], contents: Contents, talk: Talk) -> Change:
    """The change with the facts' cues: known ones are linked, new ones made. No fact's index becomes a cue."""
    if not facts:
        return Change(episode)
    after = contents.facts | {fact.id: fact for fact in facts}
    headings = {_name(fact.heading) for fact in after.values()}
    known = {cue.name: cue.id for cue in contents.cues.values()}
    made: dict[str, tuple[str, str]] = {}
    linked: list[Fact] = []
    for fact, texts in zip(facts, talk.cues(facts), strict=True):
        ids: dict[str, None] = {}
        for text in texts:
            name = _name(text)
            if name in headings:
                continue
            if name not in known:
                known[name] = f"cue-{episode.number:04}-{len(made) + 1:03}"
                made[name] = (known[name], " ".join(text.split()))
            ids[known[name]] = None
        linked.append(replace(fact, cues=tuple(ids)))
    vectors = talk.vectors([text for _, text in made.values()])
    cues = [Cue(id_, text, name, v) for (name, (id_, text)), v in zip(made.items(), vectors, strict=True)]
    return Change(episode, tuple(linked), tuple(cues))


def _name(text: str) -> str:
    return " ".join(text.split()).casefold()
