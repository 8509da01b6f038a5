"""The texts that tell moderators why a comment has its status (pure)."""

from comments.domain.languages import catalogue
from comments.domain.moderation import classifier_verdicts

_KINDS = {
    "policy": "admin.ruling-policy",
    "moderator": "admin.ruling-moderator",
    "ban": "admin.ruling-ban",
    "shadow": "admin.ruling-shadow",
    "reports": "admin.ruling-reports",
    "turnstile": "admin.ruling-turnstile",
    "form": "admin.ruling-form",
}
_CLASSIFIERS = {
    classifier_verdicts.AKISMET: "admin.classifier-akismet",
    classifier_verdicts.WEBHOOK: "admin.classifier-webhook",
}
# The kinds of rulings by which moderators can filter comments, most frequent first. Classifiers are
# one kind, whether they answered or are still to answer.
CLASSIFIER, RULE = "classifier", "rule"
FILTERS = ("policy", RULE, CLASSIFIER, "reports", "form", "turnstile", "ban", "shadow", "moderator")
_FILTER_TEXTS = _KINDS | {CLASSIFIER: "admin.filter-classifier", RULE: "admin.filter-rule"}
_ENDS = (".", "?", "!")
t = catalogue.ENGLISH.text


def decision_text(rule: str, why: str) -> str:
    """Return the rule or decision that gave a comment its status, as text; "" if unknown.

    Rules are stored as "kind" or "kind:detail" (`records.Ruling`).
    """
    if names := classifier_verdicts.awaited_classifiers(rule):
        return t("admin.ruling-opinion", classifiers=", ".join(map(classifier, names)))
    kind, _, detail = rule.partition(":")
    if kind == "rule":
        shown = t("admin.ruling-rule", rule=detail)
    elif kind in classifier_verdicts.NAMES:
        shown = classifier(kind)
    else:
        shown = t(_KINDS[kind]) if kind in _KINDS else kind
    if shown and why:
        return t("admin.ruling-why", ruling=shown, why=why)
    sentence = f"{why[:1].upper()}{why[1:]}"
    return shown or (sentence if not why or why.endswith(_ENDS) else f"{sentence}.")


def filter_text(kind: str) -> str:
    """Return the text of one of `FILTERS`."""
    return t(_FILTER_TEXTS[kind])


def is_ruling(wanted: str, rule: str) -> bool:
    """Return whether a stored rule is of a kind in `FILTERS`, or is one rule of the site."""
    kind = rule.partition(":")[0]
    if wanted == CLASSIFIER:
        return kind in classifier_verdicts.NAMES or bool(
            classifier_verdicts.awaited_classifiers(rule)
        )
    return wanted in {kind, rule}


def classifier(name: str) -> str:
    """Return the name of a classifier."""
    return t(_CLASSIFIERS[name]) if name in _CLASSIFIERS else name
