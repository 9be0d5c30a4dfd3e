"""From the models of a family to terms of an objective, over one vocabulary or through text."""

from __future__ import annotations

from simplexity.models.family import Family, Member
from simplexity.models.huggingface import HuggingFaceSeq2Seq
from simplexity.models.seq2seq import Seq2Seq
from simplexity.objectives import TermName
from simplexity.terms.language_model import ReadsWell
from simplexity.terms.likelihood import Likelihood, Reverse
from simplexity.terms.mix import Term
from simplexity.terms.through_text import Bridge, ThroughText


def term(name: TermName, family: Family, shortlisted: bool) -> Term:
    """A model as a term; `shortlisted` scores soft strings among their candidates alone."""
    if name == "lm":
        return _language_model(family)
    member = family[name]
    if not family.through_text:
        return Reverse(member.model) if name == "reverse" else Likelihood(member.model, shortlisted)
    main = family["l2r"]
    if name == "reverse":
        string = Bridge(main.target, member.source, most_read(member.model), member.model.device)
        given = _between(main, member.target.fingerprint, member)
        return ThroughText(Reverse(member.model), given, string, counts_source=True)
    bridge = Bridge(main.target, member.target, member.model.max_length, member.model.device)
    return ThroughText(Likelihood(member.model, shortlisted and bridge.same), None, bridge)


def _between(main: Member, fingerprint: str, reverse: Member) -> Bridge | None:
    """How the reverse model reads the source; None where it has the same words."""
    if main.source.fingerprint == fingerprint:
        return None
    return Bridge(main.source, reverse.target, reverse.model.max_length, reverse.model.device)


def _language_model(family: Family) -> Term:
    main, fluency = family["l2r"], family.fluency()
    term = ReadsWell(fluency.model)
    bridge = Bridge(main.target, fluency.vocabulary, fluency.model.max_length, fluency.model.device)
    return term if bridge.same and not family.through_text else ThroughText(term, None, bridge)


def most_read(model: Seq2Seq) -> int:
    """Words of a source that a model can read."""
    return model.max_source if isinstance(model, HuggingFaceSeq2Seq) else model.max_length
