"""How data contradict a model: residuals, subjects without names, correlations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._fitting.chain import settle
from skihmm._typing import Array, Floats, Integers
from skihmm._using.fitted import FittedModel
from skihmm._using.residuals import ahead_of, cumulative_shares, normal_residuals
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import BaseEmission, NormalInverseGamma
from skihmm.emissions._gaps import open_gaps
from skihmm.emissions._given import given_of
from skihmm.emissions._hidden_numbers import open_hidden
from skihmm.emissions._subjects import (
    has_subjects,
    offset_columns,
    parts_with_subjects,
    subject_columns,
    without_subjects,
)
from skihmm.metrics._labels import FIRM
from skihmm.metrics._structure import correlated_columns, different_subjects, unnamed_subjects
from skihmm.posterior._regimes import FoundRegimes, why_no_regimes

# Fewer values are not judged.
_LEAST_VALUES = 100
# Standard errors that a finding needs, beside its size, and a correlation at lag 1.
_SIGNIFICANT, _CORRELATED = 5.0, 4.0
_LEAST_KURTOSIS, _LEAST_SKEWNESS, _LEAST_CORRELATION = 3.5, 0.3, 0.08
_LEAST_RATIO, _LEAST_ZEROS = 1.5, 0.02
_MOST_LAGS, _N_BLOCKS = 5, 10
# Variance of the residuals of positive counts that is more than a Poisson's.
_LEAST_DISPERSION = 1.3
# Remedies with names that may be replaced.
_HEAVY_TAILS = 'emission="student"'
_CORRELATED_NOISE = '"gaussian" (NormalInverseWishart)'


def joined_path(fitted: FittedModel, regimes: FoundRegimes) -> Integers:
    """Path of the selected draw in which each regime's states are joined.

    Symbols have no shape of noise, and where regimes are not found yet the states stay as they are.
    """
    path = fitted.labels
    if fitted.emission.is_categorical or why_no_regimes(fitted.selected):
        return path
    # Regimes are numbered by their own paths; this path may lack some.
    return np.unique(regimes().state_regimes_[path], return_inverse=True)[1]


def draw_of_path(
    fitted: FittedModel,
    path: Integers,
    stream: RandomStream,
    sequences: Sequences | None = None,
) -> Draw:
    """Draw with these states, and with hyperparameters that suit them.

    By default the rows come from the fit.
    """
    selected = fitted.selected
    if sequences is None:
        sequences = fitted.sequences
    stats = fitted.emission.make_stats(sequences.codes)
    open_gaps(stats, sequences.starts)
    seating = fitted.transitions.make_seating(sequences.contexts)
    state = ChainState(sequences.starts, seating, stats, stream)
    stats.take_hyperparameters(selected.emission)
    open_hidden(stats, sequences.starts)
    state.start_from(path.astype(np.int32))
    settle(state)
    arrays = state.to_arrays()
    return replace(
        selected,
        n_states=arrays["n_states"],
        lp=state.log_joint(),
        states=arrays["states"],
        transitions=arrays["transitions"],
        emission=arrays["emission"],
    )


def regime_draw(fitted: FittedModel, regimes: FoundRegimes) -> tuple[Draw, Floats]:
    """Draw in which each regime's states are joined, and its residuals.

    Columns without a cumulative distribution function have no residuals here.
    """
    sequences, emission = fitted.sequences, fitted.emission
    stream = RandomStream(np.random.SeedSequence(fitted.entropy))
    draw = draw_of_path(fitted, joined_path(fitted, regimes), stream)
    residuals = normal_residuals([draw], np.ones(1), sequences, emission, stream, 0)
    return draw, residuals


# Size, by which columns are compared, and words of findings about a column, by kind.
Findings = dict[str, tuple[float, str]]
# Kinds that are the shape of noise, which clusters have, too.
_SHAPES = ("skew", "tails", "dispersion")


def _correlation(a: Floats, b: Floats, errors: float = _SIGNIFICANT) -> float:
    """Correlation over the known pairs; 0 where it is small or uncertain."""
    is_known = np.isfinite(a) & np.isfinite(b)
    if is_known.sum() < _LEAST_VALUES:
        return 0.0
    a, b = a[is_known] - a[is_known].mean(), b[is_known] - b[is_known].mean()
    size = np.sqrt((a @ a) * (b @ b))
    rho = float(a @ b / size) if size > 0 else 0.0
    is_found = abs(rho) > max(_LEAST_CORRELATION, errors / np.sqrt(len(a)))
    return rho if is_found else 0.0


def memory_of(residuals: Floats, sequences: Sequences) -> tuple[int, float]:
    """Lag of the largest autocorrelation of a column, and the autocorrelation."""
    which = np.searchsorted(sequences.starts, np.arange(len(residuals)), side="right")
    rho = []
    for lag in range(1, _MOST_LAGS + 1):
        is_same = which[lag:] == which[:-lag]
        later = np.where(is_same, residuals[lag:], np.nan)
        errors = _CORRELATED if lag == 1 else _SIGNIFICANT
        rho.append(_correlation(later, residuals[:-lag], errors))
    largest = int(np.argmax(np.abs(rho)))
    return largest + 1, rho[largest]


def judge(residuals: Floats, sequences: Sequences) -> Findings:
    """Findings about 100 or more residuals of one column."""
    known = residuals[np.isfinite(residuals)]
    n = len(known)
    found: Findings = {}
    if np.ptp(known) == 0:
        return found
    scaled = (known - known.mean()) / known.std()
    skewness, kurtosis = float((scaled**3).mean()), float((scaled**4).mean())
    is_skewed = abs(skewness) > max(_LEAST_SKEWNESS, _SIGNIFICANT * np.sqrt(6 / n))
    # A gamma distribution has 1.5 skewness^2 = kurtosis - 3; heavy tails are skewed too,
    # in a sample.
    if is_skewed and skewness**2 > (kurtosis - 3) / 3:
        found["skew"] = abs(skewness), f"are skewed, {skewness:.1f}"
    elif kurtosis > max(_LEAST_KURTOSIS, 3 + _SIGNIFICANT * np.sqrt(24 / n)):
        words = f"have heavier tails than the noise, kurtosis {kurtosis:.1f}"
        found["tails"] = kurtosis, words
    lag, rho = memory_of(residuals, sequences)
    if rho:
        found["memory"] = abs(rho), f"are correlated at lag {lag}, {rho:.2f}"
    variances = np.array([b.var() for b in np.array_split(scaled, _N_BLOCKS)])
    # Constant sequences have zero, which is no drift.
    varied = variances[variances > 0]
    ratio = float(varied.max() / varied.min())
    # Two values of equal frequency have the least kurtosis, 1.
    least = np.finfo(float).eps
    deviance = ((variances - 1) ** 2).sum() * n / _N_BLOCKS / max(kurtosis - 1, least)
    limit = _N_BLOCKS + _SIGNIFICANT * np.sqrt(2 * _N_BLOCKS)
    if ratio > _LEAST_RATIO and deviance > limit:
        words = f"drift: their variance differs by a factor of {ratio:.1f} over time"
        found["spread"] = ratio, words
    return found


def judge_zeros(counts: Floats, expected: Floats) -> Findings:
    """Finding about counts that are zero more often than expected."""
    share, mean = (counts == 0).mean(), expected.mean()
    error = np.sqrt((expected * (1 - expected)).mean() / len(expected))
    if share - mean < max(_LEAST_ZEROS, _SIGNIFICANT * error):
        return {}
    words = f"are low at zeros, of which there are {share:.0%} and {mean:.0%} expected"
    return {"zeros": (share - mean, words)}


def judge_dispersion(counts: Floats, expected: Floats, residuals: Floats) -> Findings:
    """Finding about counts that vary more than the noise, zeros left out.

    `expected` are their probabilities of zero.  Zeros beyond the expected ones lower the fitted
    mean, so that the residuals of other counts vary more, by the inverse of their share.
    """
    known = residuals[(counts > 0) & np.isfinite(residuals)]
    if len(known) < _LEAST_VALUES:
        return {}
    spread = known - known.mean()
    variance, fourth = float((spread**2).mean()), float((spread**4).mean())
    n_extra = max(float((counts == 0).mean() - expected.mean()), 0.0)
    variance, fourth = variance * (1 - n_extra), fourth * (1 - n_extra) ** 2
    error = math.sqrt(max(fourth - variance**2, 0.0) / len(known))
    if variance < max(_LEAST_DISPERSION, 1 + _SIGNIFICANT * error):
        return {}
    words = f"vary more than the noise, standard deviation {math.sqrt(variance):.1f}"
    return {"dispersion": (variance, words)}


def judge_changes(path: Integers, starts: Integers, leaving: Floats) -> list[str]:
    """Sentence about changes of a path, if they are more or fewer than is probable."""
    follows = np.delete(np.arange(len(path)), starts)
    n_changes = np.count_nonzero(path[follows] != path[follows - 1])
    probs = leaving[path[follows - 1]]
    error = _SIGNIFICANT * np.sqrt((probs * (1 - probs)).sum())
    more, fewer = max(n_changes, probs.sum()), min(n_changes, probs.sum())
    if more - fewer < error or more < _LEAST_RATIO * fewer:
        return []
    return [
        f"States change {n_changes} times, where {probs.sum():.0f} times are expected: "
        "fixed priors of how long they last (stay_prior) do not suit the data."
    ]


def _remedies(emission: BaseEmission) -> dict[str, str]:
    """Remedies of findings, by kind; none where none is known."""
    params = emission.get_params(deep=False)
    found = {
        "zeros": "whether a value is 0 may be a column of its own (ProductEmission)",
        "bend": "add its square to the inputs, or take logarithms of the values",
        "spread": "divide the values by a moving scale, or take logarithms",
    }
    if "resolution" in params:
        found["skew"] = 'try logarithms, or emission="gamma" for positive numbers'
        found["memory"] = (
            "try a higher order" if "order" in params else 'try emission="autoregressive"'
        )
        if params.get("noise") in ("auto", "normal"):
            found["tails"] = 'try noise="student"'
        elif "noise" not in params:
            found["tails"] = f"try {_HEAVY_TAILS}"
    elif params.keys() == {"shape", "rate"}:  # Poisson
        kinds = "dispersion", "tails", "skew"
        found |= dict.fromkeys(kinds, 'try emission="negative_binomial"')
    return found


def _bends(residuals: Floats, inputs: Floats, names: Array) -> Findings:
    """Finding about residuals that follow the square of an input."""
    found = Findings()
    for name, values in zip(names, inputs.T, strict=True):
        bend = _correlation(residuals, (values - np.nanmean(values)) ** 2)
        if bend:
            words = f"bend with input {name}, correlation {bend:.2f} with its square"
            found["bend"] = abs(bend), words
    return found


def _are_equal(values: Floats, groups: Array) -> bool:
    """Whether every group has one value."""
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    return bool((values == values[first][which]).all())


def _judge_columns(
    fitted: FittedModel, draw: Draw, residuals: Floats, labels: Array
) -> dict[str, list[tuple[float, str]]]:
    """Findings about the residuals of all columns, by kind."""
    emission, names = fitted.emission, np.array(fitted.columns.labels)
    sequences, given = fitted.sequences, fitted.given
    codes, n = sequences.codes, residuals.shape[1]
    are_inputs = given.kinds_of_emission == "input"
    inputs = given_of(emission, codes)[:, are_inputs]
    input_names = names[given.columns[given.of_emission[are_inputs]]]
    is_discrete = emission.columns(n).are_discrete
    is_count = is_discrete & ~emission.columns(n).are_symbols
    at_zero = zeros = np.zeros(residuals.shape)
    if is_count.any():
        ahead = ahead_of([draw], np.ones(1), sequences, emission)
        at_zero = cumulative_shares(ahead, emission, zeros, codes[:, n:])[1]
    assert draw.states is not None
    found: dict[str, list[tuple[float, str]]] = {}
    for c, label in enumerate(labels):
        is_known = np.isfinite(residuals[:, c])
        # Exact values have no noise; symbols and counts of one value a state may have memory.
        groups = zeros[:, 0] if is_discrete[c] else draw.states
        if is_known.sum() < _LEAST_VALUES or _are_equal(codes[is_known, c], groups[is_known]):
            continue
        here = _bends(residuals[:, c], inputs, input_names)
        if is_count[c]:
            counts = codes[is_known, c], at_zero[is_known, c]
            # Noise of a larger variance has more zeros, too.
            here |= judge_dispersion(*counts, residuals[is_known, c]) or judge_zeros(*counts)
        # These findings are causes; the other findings are their effects.
        here = here or judge(residuals[:, c], sequences)
        for kind, (size, words) in here.items():
            of = f" of column {label}" if n > 1 else ""
            found.setdefault(kind, []).append((size, f"{of} {words}"))
    return found


def _judge_correlations(fitted: FittedModel, groups: Integers, labels: Array) -> list[str]:
    """Sentence about columns that are correlated within states, but not in the model."""
    emission, codes = fitted.emission, fitted.sequences.codes
    if not isinstance(emission, NormalInverseGamma) or len(labels) < 2:
        return []
    codes = without_subjects(emission, codes, fitted.selected.emission)[1]
    found = correlated_columns(codes[:, : len(labels)], groups)
    if found is None:
        return []
    rho, a, b = found
    return [
        f"Columns {labels[a]} and {labels[b]} are correlated within states, {rho:.2f}, "
        f"which this emission does not describe: try {_CORRELATED_NOISE}."
    ]


def _judge_subjects(fitted: FittedModel, labels: Array) -> str | None:
    """Sentence about states of few subjects, or of few sequences if subjects have no names."""
    emission, path, sequences = fitted.emission, fitted.labels, fitted.sequences
    if not has_subjects(emission):
        return unnamed_subjects(path, sequences.starts)
    codes = sequences.codes
    subjects = codes[:, subject_columns(emission, codes.shape[1])[0]].astype(np.intp)
    shifted = labels[offset_columns(emission, len(labels))].tolist()
    has_scale = any(part.subject_scale for part in parts_with_subjects(emission))
    return different_subjects(path, sequences.starts, subjects, shifted, has_scale)


class Misfit(NamedTuple):
    """How the data contradict a model, and whether it is the noise of regimes.

    States that alternate at random by the evidence describe the noise of one regime, also where the
    states are not the best ones.
    """

    words: str
    is_noise_of_regimes: bool = False


def find_misfits(
    fitted: FittedModel, regimes: FoundRegimes, firm: float = math.nan
) -> list[Misfit]:
    """Misfits of a fit, at most one of each kind, of its worst column.

    `firm` is the share of the steps whose states nine of ten draws agree on.  With a large share,
    states that alternate at random are clusters, not the shape of the noise.
    """
    emission, path, sequences = fitted.emission, fitted.labels, fitted.sequences
    # A column without an observed symbol has no distribution.
    if sequences.n_steps < _LEAST_VALUES or emission.columns(len(fitted.observed)).lacks_symbols:
        return []
    draw, residuals = regime_draw(fitted, regimes)
    n = residuals.shape[1]
    labels = fitted.observed_labels[emission.columns(n).order]
    are_joined = draw.n_states <= path.max()
    have_clusters = are_joined and firm >= FIRM
    subjects = _judge_subjects(fitted, labels)
    misfits = [] if subjects is None else [Misfit(subjects)]
    if not have_clusters:
        assert draw.states is not None
        correlated = _judge_correlations(fitted, draw.states, labels)
        misfits += [Misfit(words, are_joined) for words in correlated]
    begin = "Residuals"
    if are_joined:
        counts = f"{path.max() + 1} are {draw.n_states}"
        begin = f"With states joined that alternate at random ({counts}), residuals"
    remedies = _remedies(emission)
    for kind, columns in _judge_columns(fitted, draw, residuals, labels).items():
        if have_clusters and kind in _SHAPES:
            continue
        remedy = f": {remedies[kind]}" if kind in remedies else ""
        words = f"{begin}{max(columns)[1]}{remedy}."
        misfits.append(Misfit(words, are_joined and kind in _SHAPES))
    if sequences.contexts is None:
        stays = fitted.transmat.diagonal()
        changes = judge_changes(path, sequences.starts, 1 - stays)
        misfits += [Misfit(words) for words in changes]
    return misfits
