"""Remedies of findings that depend on the emission."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skihmm._typing import Integers
from skihmm._using.fitted import FittedModel
from skihmm.emissions._subjects import has_subjects
from skihmm.metrics._finding import Finding

_STUDENT: dict[str, object] = {"emission": "student"}
_AUTOREGRESSIVE: dict[str, object] = {"emission": "autoregressive"}


def has_heavy_noise(fitted: FittedModel) -> bool:
    """Whether the noise has a Student's t distribution."""
    names = fitted.emission.hyperparameters(fitted.selected.emission)
    return any(name.endswith("noise_dof") for name in names)


def _words(params: dict[str, object]) -> str:
    return " and ".join(f"{name.removeprefix('emission__')}={v!r}" for name, v in params.items())


def _spread_follows_level(fitted: FittedModel, joined: Integers, c: int) -> bool:
    """Whether regimes of larger values of a column vary more, in proportion."""
    columns = fitted.emission.columns(len(fitted.observed))
    values = fitted.sequences.codes[:, c] + columns.offsets[c]
    rows = [values[(joined == k) & np.isfinite(values)] for k in range(joined.max() + 1)]
    rows = [own for own in rows if len(own) > 30]
    if len(rows) < 2 or np.nanmin(values) <= 0:
        return False
    spread, level = (np.array([f(own) for own in rows]) for f in (np.std, np.mean))
    return bool(np.ptp(np.log(spread / level)) < 0.5 * np.ptp(np.log(spread)))


def with_remedy(finding: Finding, fitted: FittedModel, joined: Integers) -> Finding:
    """The finding with the remedy that the emission of the fit has, if there is one."""
    emission = fitted.emission
    params = emission.get_params(deep=False)
    columns = fitted.emission.columns(len(fitted.observed))
    labels = fitted.observed_labels[columns.order].tolist()
    c = labels.index(finding.column) if finding.column in labels else 0
    # Gaussian emissions round.
    kind, is_gaussian = finding.kind, "resolution" in params
    others = "read the regimes (hmm.regimes_)"
    new: dict[str, object] = {}
    if kind == "sequences":
        how = "center and scale the columns by sequence"
        if "subject_feature" in params:
            words = f"name the subjects (subject_feature=), or {how}"
            call = "hmm.set_params(emission__subject_feature=...).fit(X, groups=groups)"
            return replace(finding, remedy=words, call=call)
        return replace(finding, remedy=f"{how}, if sequences are of different subjects")
    if kind == "moving":
        words = "give the input that moves it, or subtract a moving median"
        if len(fitted.sequences.starts) > 3 and not has_subjects(emission):
            words = f"name the subjects, if sequences have several (subject_feature=); else {words}"
        return replace(finding, remedy=words)
    if kind == "interleaved":
        return replace(finding, call="hmm.fit(X, groups=source)")
    if kind == "memory":
        if "order" in params:
            new = {"emission__order": params["order"] + 1}
        elif is_gaussian:
            new = _AUTOREGRESSIVE
    elif kind in ("tails", "outliers") and is_gaussian:
        if has_heavy_noise(fitted):
            words = others if kind == "tails" else finding.remedy
            return replace(finding, remedy=words)
        new = {"emission__noise": "student"} if "noise" in params else _STUDENT
    elif kind == "tails":
        return replace(finding, remedy=others)
    elif kind == "leads" and is_gaussian and "order" not in params:
        new = _AUTOREGRESSIVE
    elif kind == "skew":
        if is_gaussian and _spread_follows_level(fitted, joined, c):
            new = {"emission": "gamma"}
        else:
            return replace(finding, remedy=f"{others}: no noise here is skewed at one scale")
    elif kind == "dispersion":
        is_more = "vary more" in finding.seen
        if is_more and params.keys() == {"shape", "rate"}:
            new = {"emission": "negative_binomial"}
        elif not is_more and columns.part.max() == 0:
            new = {"emission": "gaussian"}
        else:
            return replace(finding, remedy=others)
    elif kind == "columns":
        if is_gaussian:
            new = {"emission": "gaussian"}
        elif (columns.kinds == "binary").all():
            words = 'one column of their four combinations (emission="dirichlet")'
            return replace(finding, remedy=words)
        else:
            return replace(finding, remedy=others)
    if not new:
        return finding
    words = f"try {_words(new)}"
    if kind == "outliers":
        words += ", or set them to missing"
    return replace(finding, remedy=words, params=new)
