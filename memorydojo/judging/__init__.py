"""Judging: labels for what memories stored and delivered, made from saved facts and kept apart from them."""

from memorydojo.history import HeldOutQuestion
from memorydojo.judging._checks import (
    CHECKS,
    Check,
    RunChecks,
    SessionCheck,
    bearing_entries,
    earliest_failed_checks,
)
from memorydojo.judging._exact import exact
from memorydojo.judging._provenance import EntryVersion, Provenance, provenance
from memorydojo.judging.again import JudgeReport, judge_runs
from memorydojo.judging.agreement import Agreement, agreement
from memorydojo.judging.answer_rules import AnswerRules
from memorydojo.judging.answers import AnswerJudge
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
from memorydojo.judging.labelling import Facts, RunFacts, answers_version, label_run
from memorydojo.judging.labels import (
    POISON,
    STRENGTH,
    AnswerLabel,
    AnswerMarker,
    EntryLabel,
    ItemLabel,
    Judge,
    Judgement,
    Judging,
    Label,
    Labels,
    ObjectiveJudge,
    SessionLabels,
)
from memorydojo.judging.llm import LLMJudge
from memorydojo.judging.overlap import OverlapJudge

__all__ = [
    "CHECKS",
    "POISON",
    "STRENGTH",
    "Agreement",
    "AnswerJudge",
    "AnswerLabel",
    "AnswerMarker",
    "AnswerRules",
    "Check",
    "EdgeKind",
    "EntryLabel",
    "EntryVersion",
    "Facts",
    "HeldOutQuestion",
    "ItemLabel",
    "ItemNode",
    "Judge",
    "JudgeReport",
    "Judgement",
    "Judging",
    "LLMJudge",
    "Label",
    "Labels",
    "Node",
    "ObjectiveJudge",
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
    "agreement",
    "answers_version",
    "bearing_entries",
    "earliest_failed_checks",
    "exact",
    "judge_runs",
    "label_run",
    "provenance",
    "provenance_graph",
]
