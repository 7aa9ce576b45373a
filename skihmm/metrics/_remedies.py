"""Remedies of findings that depend on the emission."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from skihmm._data.other_names import lacking_of, remedy_of
from skihmm._texts import keyword_text
from skihmm._typing import Integers
from skihmm._using.fitted import FittedModel
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._dispersed import GammaGamma, VonMises
from skihmm.emissions._names import EMISSIONS
from skihmm.emissions._subjects import has_subjects
from skihmm.metrics._finding import Finding

# Emissions with inputs, by the kind of their columns.
_WITH_INPUTS = {
    "real": "regression",
    "counts": "log_linear",
    "binary": "logistic",
    "symbols": "choice",
}
_READ = "read the regimes (hmm.regimes_)"


def has_heavy_noise(fitted: FittedModel) -> bool:
    """Whether the noise has a Student's t distribution."""
    names = fitted.emission.hyperparameters(fitted.selected.emission)
    return any(name.endswith("noise_dof") for name in names)


@dataclass(frozen=True, eq=False)
class _Place:
    """The emission that a finding is about: one of the parts, or the only one.

    Parameters
    ----------
    fitted : FittedModel
    joined : ndarray of shape (n_samples,), int
        Regimes of the rows.
    emission : BaseEmission
    path : str
        Parameter of the estimator that holds the emission.
    column : int
        Of the encoded columns; the first one of a finding about none.
    """

    fitted: FittedModel
    joined: Integers
    emission: BaseEmission
    path: str
    column: int

    @classmethod
    def of(cls, finding: Finding, fitted: FittedModel, joined: Integers) -> _Place:
        columns = fitted.emission.columns(len(fitted.observed))
        labels = fitted.observed_labels[columns.order].tolist()
        c = labels.index(finding.column) if finding.column in labels else 0
        parts = fitted.emission.parts
        if finding.column in labels or len(parts) == 1:
            part = parts[columns.part[c]]
            path = f"emission__{part.prefix}".removesuffix("__")
            return cls(fitted, joined, part.emission, path, c)
        return cls(fitted, joined, fitted.emission, "emission", c)

    @property
    def params(self) -> Mapping[str, object]:
        return self.emission.get_params(deep=False)

    @property
    def kind(self) -> str:
        """Kind of the column."""
        return str(self.fitted.emission.columns(len(self.fitted.observed)).kinds[self.column])

    @property
    def is_angle(self) -> bool:
        columns = self.fitted.emission.columns(len(self.fitted.observed))
        return bool(np.isfinite(columns.periods[self.column]))

    @property
    def is_gaussian(self) -> bool:
        # Gaussian emissions round.
        return "resolution" in self.params

    def replaced_by(self, name: str) -> dict[str, object]:
        """Parameters of the estimator with another emission, which reads the same columns.

        Empty if the other emission has no place for a column that this one is given.
        """
        params = self.params.items()
        given = {k: v for k, v in params if k.endswith(("_feature", "_features")) and v is not None}
        if not given:
            return {self.path: name}
        other = EMISSIONS[name]()
        if not given.keys() <= other.get_params().keys():
            return {}
        return {self.path: other.set_params(**given)}

    def as_input(self) -> str:
        if "input_features" in self.params:
            return "as an input (input_features=)"
        return f'as an input of emission="{_WITH_INPUTS[self.kind]}"'


def _trying(finding: Finding, new: dict[str, object], otherwise: str = _READ) -> Finding:
    if not new:
        return replace(finding, remedy=otherwise)
    words = {name.removeprefix("emission__"): value for name, value in new.items()}
    return replace(finding, remedy=f"try {keyword_text(words, ' and ')}", params=new)


def _subjects(finding: Finding, place: _Place) -> Finding:
    fitted = place.fitted
    if has_subjects(fitted.emission):
        return replace(finding, remedy="center and scale the columns by sequence")
    if "subject_feature" not in place.params:
        instead = remedy_of(lacking_of(place.emission), "subject_feature")
        words = instead.removesuffix(".") if instead else "center and scale columns by sequence"
        words = f"if sequences are of different subjects, {words}"
        call = _call_with_subjects(place) if place.kind in ("counts", "binary") else ""
        return replace(finding, remedy=words, call=call)
    words = "give the subject of each row as a column, and name the column (subject_feature=)"
    return replace(finding, remedy=words, call=_call_with_subjects(place))


def _call_with_subjects(place: _Place) -> str:
    """Fit with the ids of sequences as a further column."""
    fitted = place.fitted
    name, X = "'subject'", "X.assign(subject=groups)"
    if fitted.columns.names is None:
        name, X = str(fitted.columns.number), "np.column_stack([X, groups])"
    elif fitted.columns.library == "polars":
        X = "X.with_columns(subject=groups)"
    params = f"{place.path}__subject_feature={name}"
    if "subject_feature" not in place.params:
        other = type(EMISSIONS[_WITH_INPUTS[place.kind]]()).__name__
        params = f"{place.path}={other}(subject_feature={name})"
    return f"hmm.set_params({params}).fit({X}, groups=groups)"


def _shape(place: _Place) -> str:
    """Remedy of emissions with one shape for all states: gamma and von Mises."""
    if not isinstance(place.emission, GammaGamma | VonMises):
        return ""
    how = "cut angles into bins" if place.is_angle else "take logarithms with a Gaussian"
    return f"{how} (states may differ in shape), or "


def _drift(finding: Finding, place: _Place) -> Finding:
    words = f"give time, or what drifts, {place.as_input()}"
    if place.kind == "real":
        words = f"{_shape(place)}subtract a moving median, or {words}"
    return replace(finding, remedy=words)


def _moving(finding: Finding, place: _Place) -> Finding:
    words = f"{_shape(place)}give what moves it {place.as_input()}"
    if place.kind == "real":
        words += ", or subtract a moving median"
    are_many = len(place.fitted.sequences.starts) > 3 and "subject_feature" in place.params
    if are_many and not has_subjects(place.fitted.emission):
        words = f"name the subjects, if sequences have several (subject_feature=); else {words}"
    return replace(finding, remedy=words)


def _memory(finding: Finding, place: _Place) -> Finding:
    order = place.params.get("order")
    if isinstance(order, int):
        return _trying(finding, {f"{place.path}__order": max(order + 1, int(finding.lag))})
    if place.is_gaussian:
        return _trying(finding, place.replaced_by("autoregressive"), finding.remedy)
    if place.kind == "real":
        words = _READ if place.is_angle else 'try emission="autoregressive" of logarithms'
        return replace(finding, remedy=f"{_shape(place)}{words}")
    return replace(finding, remedy=f"give the past {place.as_input()}")


def _spread(finding: Finding, place: _Place) -> Finding:
    if not place.is_angle:
        return finding
    return replace(finding, remedy="cut angles into bins, since states may differ in concentration")


def _tails(finding: Finding, place: _Place) -> Finding:
    if not place.is_gaussian or has_heavy_noise(place.fitted):
        return replace(finding, remedy=f"{_READ}, or give what moves the values as an input")
    return _trying(finding, _student(place))


def _student(place: _Place) -> dict[str, object]:
    if "noise" in place.params:
        return {f"{place.path}__noise": "student"}
    return place.replaced_by("student")


def _outliers(finding: Finding, place: _Place) -> Finding:
    new = _student(place) if place.is_gaussian and not has_heavy_noise(place.fitted) else {}
    found = _trying(finding, new, finding.remedy)
    return replace(found, remedy=f"{found.remedy}, or set them to missing") if new else found


def _skew(finding: Finding, place: _Place) -> Finding:
    otherwise = f"{_READ}: no noise here is skewed at one scale"
    if not (place.is_gaussian and _spread_follows_level(place)):
        return replace(finding, remedy=otherwise)
    return _trying(finding, place.replaced_by("gamma"), "take logarithms of the values")


def _spread_follows_level(place: _Place) -> bool:
    """Whether regimes of larger values of a column vary more, in proportion.

    The other columns of the emission are positive, too.
    """
    fitted, joined = place.fitted, place.joined
    columns = fitted.emission.columns(len(fitted.observed))
    all_values = fitted.sequences.codes[:, : len(fitted.observed)] + columns.offsets
    own = columns.part == columns.part[place.column]
    if np.nanmin(all_values[:, own]) <= 0:
        return False
    values = all_values[:, place.column]
    rows = [values[(joined == k) & np.isfinite(values)] for k in range(joined.max() + 1)]
    rows = [known for known in rows if len(known) > 30]
    if len(rows) < 2:
        return False
    spread, level = (np.array([f(known) for known in rows]) for f in (np.std, np.mean))
    return bool(np.ptp(np.log(spread / level)) < 0.5 * np.ptp(np.log(spread)))


def _more_dispersed(finding: Finding, place: _Place) -> Finding:
    is_poisson = place.params.keys() == {"shape", "rate"}
    return _trying(finding, place.replaced_by("negative_binomial") if is_poisson else {})


def _less_dispersed(finding: Finding, place: _Place) -> Finding:
    name = "regression" if place.params.get("input_features") else "gaussian"
    return _trying(finding, place.replaced_by(name))


def _columns(finding: Finding, place: _Place) -> Finding:
    if place.is_gaussian:
        return _trying(finding, place.replaced_by("gaussian"))
    fitted = place.fitted
    if (fitted.emission.columns(len(fitted.observed)).kinds == "binary").all():
        words = 'make one column of their four combinations (emission="dirichlet")'
        return replace(finding, remedy=words)
    return replace(finding, remedy=_READ)


def _cycle(finding: Finding, place: _Place) -> Finding:
    columns = place.fitted.emission.columns(len(place.fitted.observed))
    if not finding.call or (columns.kinds != "real").any():
        # Windows are windows of numbers.
        return replace(finding, call="")
    # Only users know whether levels have a period, or states are shapes.
    words = f"if the shape over a period is what changes, {finding.call}; else {finding.remedy}"
    return replace(finding, remedy=words, call=f"{finding.call}.fit({_arguments(place)})")


def _arguments(place: _Place) -> str:
    return "X, groups=groups" if len(place.fitted.sequences.starts) > 1 else "X"


def _interleaved(finding: Finding, place: _Place) -> Finding:
    return replace(finding, call="hmm.fit(X, groups=source)")


_BY_KIND: dict[str, Callable[[Finding, _Place], Finding]] = {
    "sequences": _subjects,
    "drift": _drift,
    "moving": _moving,
    "cycle": _cycle,
    "interleaved": _interleaved,
    "memory": _memory,
    "leads": _memory,
    "spread": _spread,
    "tails": _tails,
    "outliers": _outliers,
    "skew": _skew,
    "dispersion": _more_dispersed,
    "underdispersion": _less_dispersed,
    "columns": _columns,
}


def with_remedy(finding: Finding, fitted: FittedModel, joined: Integers) -> Finding:
    """The finding with the remedy that the emission of the fit has, if there is one."""
    of_kind = _BY_KIND.get(finding.kind)
    return of_kind(finding, _Place.of(finding, fitted, joined)) if of_kind else finding
