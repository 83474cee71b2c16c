"""The memory-aware payload optimizer (paper, section 5 and appendix A.6): see ``docs/optimizer.md``.

It measures how a memory system holds out when a payload is revised for it: proposals are tested on auxiliary
environments, and what memory and the agent did with them guides the next ones.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorydojo.optimizer import auxiliary
    from memorydojo.optimizer._optimize import auxiliary_ground, optimize
    from memorydojo.optimizer._transfer import Transfer, transfer
    from memorydojo.optimizer.candidate import Candidate, Counts, Evidence, Feedback, Malformed, Proposal, Trial
    from memorydojo.optimizer.ground import Ground
    from memorydojo.optimizer.offline import FeedbackStrategy, RandomStrategy
    from memorydojo.optimizer.proposer import ModelStrategy
    from memorydojo.optimizer.results import Search, load_search
    from memorydojo.optimizer.saved import Evaluated, Event, Proposed, Selected, Stopped, Validated
    from memorydojo.optimizer.search import Budget
    from memorydojo.optimizer.selection import Selection, select
    from memorydojo.optimizer.strategy import Brief, Strategy, Turn
    from memorydojo.optimizer.validation import Rules

_NAMES = {
    "_optimize": ("auxiliary_ground", "optimize"),
    "candidate": ("Candidate", "Counts", "Evidence", "Feedback", "Malformed", "Proposal", "Trial"),
    "ground": ("Ground",),
    "offline": ("FeedbackStrategy", "RandomStrategy"),
    "proposer": ("ModelStrategy",),
    "results": ("Search", "load_search"),
    "saved": ("Evaluated", "Event", "Proposed", "Selected", "Stopped", "Validated"),
    "search": ("Budget",),
    "selection": ("Selection", "select"),
    "strategy": ("Brief", "Strategy", "Turn"),
    "_transfer": ("Transfer", "transfer"),
    "validation": ("Rules",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Brief",
    "Budget",
    "Candidate",
    "Counts",
    "Evaluated",
    "Event",
    "Evidence",
    "Feedback",
    "FeedbackStrategy",
    "Ground",
    "Malformed",
    "ModelStrategy",
    "Proposal",
    "Proposed",
    "RandomStrategy",
    "Rules",
    "Search",
    "Selected",
    "Selection",
    "Stopped",
    "Strategy",
    "Transfer",
    "Trial",
    "Turn",
    "Validated",
    "auxiliary",
    "auxiliary_ground",
    "load_search",
    "optimize",
    "select",
    "transfer",
]


def __getattr__(name: str) -> Any:
    if name == "auxiliary":
        return importlib.import_module("memorydojo.optimizer.auxiliary")
    if name in _HOME:
        found = getattr(importlib.import_module(f"memorydojo.optimizer.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'memorydojo.optimizer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
