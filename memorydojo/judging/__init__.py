"""Judging: labels for what memories stored and delivered, made from saved facts and kept apart from them."""

from memorydojo.judging._checks import CHECKS, Check, RunChecks, SessionCheck, earliest_failed_checks
from memorydojo.judging._exact import exact
from memorydojo.judging._provenance import EntryVersion, Provenance, provenance
from memorydojo.judging.graph import (
    EdgeKind,
    ItemNode,
    Node,
    ProvenanceGraph,
    SessionNode,
    Step,
    VersionNode,
    provenance_graph,
)
from memorydojo.judging.labelling import Facts, RunFacts, label_run
from memorydojo.judging.labels import (
    POISON,
    STRENGTH,
    EntryLabel,
    ItemLabel,
    Judge,
    Judgement,
    Label,
    Labels,
    SessionLabels,
)
from memorydojo.judging.overlap import OverlapJudge

__all__ = [
    "CHECKS",
    "POISON",
    "STRENGTH",
    "Check",
    "EdgeKind",
    "EntryLabel",
    "EntryVersion",
    "Facts",
    "ItemLabel",
    "ItemNode",
    "Judge",
    "Judgement",
    "Label",
    "Labels",
    "Node",
    "OverlapJudge",
    "Provenance",
    "ProvenanceGraph",
    "RunChecks",
    "RunFacts",
    "SessionCheck",
    "SessionLabels",
    "SessionNode",
    "Step",
    "VersionNode",
    "earliest_failed_checks",
    "exact",
    "label_run",
    "provenance",
    "provenance_graph",
]
