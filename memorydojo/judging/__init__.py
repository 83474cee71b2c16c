"""Judging: labels for what memories stored and delivered, made from saved facts and kept apart from them."""

from memorydojo.judging._exact import exact
from memorydojo.judging._provenance import EntryVersion, Provenance, provenance
from memorydojo.judging.again import JudgeReport, judge_runs
from memorydojo.judging.agreement import Agreement, agreement
from memorydojo.judging.answers import AnswerJudge, HeldOutQuestion
from memorydojo.judging.labelling import Facts, RunFacts, label_run
from memorydojo.judging.labels import (
    POISON,
    STRENGTH,
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
    "POISON",
    "STRENGTH",
    "Agreement",
    "AnswerJudge",
    "EntryLabel",
    "EntryVersion",
    "Facts",
    "HeldOutQuestion",
    "ItemLabel",
    "Judge",
    "JudgeReport",
    "Judgement",
    "Judging",
    "LLMJudge",
    "Label",
    "Labels",
    "ObjectiveJudge",
    "OverlapJudge",
    "Provenance",
    "RunFacts",
    "SessionLabels",
    "agreement",
    "exact",
    "judge_runs",
    "label_run",
    "provenance",
]
