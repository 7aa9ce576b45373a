"""Whether the residuals of a column are noise: what they depend on, and their shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from skihmm._texts import percent
from skihmm._typing import Array, Flags, Floats, Integers
from skihmm.metrics._finding import KINDS, Finding

# Fewer values are not judged.
LEAST_VALUES = 100
# Level of the tests of a column by Bonferroni, least standard errors and least correlation.
_LEVEL, _LEAST_ERRORS, _LEAST_CORRELATION = 0.001, 4.5, 0.08
# Standard errors of shapes and shares.
_SIGNIFICANT = 5.0
# Squares of residuals are not larger than this when they are compared.
_MOST_SQUARE = 12.0
_MOST_LAGS, _MOST_SYMBOLS, _MOST_CROSSED = 5, 40, 12
# Share of the variance that tenths of the rows, or sequences, have, and its standard errors.
_LEAST_SHARE, _LEAST_F = 0.03, 6.0
_LEAST_KURTOSIS, _LEAST_SKEWNESS, _MOST_LIGHT = 3.5, 0.3, 2.55
# Share of the rows with one exact value, and how many times its neighbours it is.
_LEAST_ATOM, _OF_NEXT, _OF_NEAR = 0.02, 4, 5
# Variance of residuals of counts.
_LEAST_DISPERSION, _MOST_DISPERSION = 1.3, 0.75
# Normal deviate of one in 10,000 rows, and the largest share of outliers.
_FAR, _RARE, _MOST_OUTLIERS = 3.89, 1e-4, 0.06
# Standard errors of lapses (-1.7 to 1.7 in 14 right fits of 2,400 and 6,000 trials), and the least
# probability of a value that is not expected.
_OF_LAPSES, _LEAST_PROB = 3.5, 0.005
# Correlation of columns within states (of right fits .08 at most), of a column with another one a
# row or two before, and of symbols with symbols before.
_OF_COLUMNS, _LEADS, _OF_SYMBOLS = 0.2, 0.1, 0.15
# Rows of a state, and share of the rows, with which symbols are compared.
_LEAST_OF_STATE, _COMMON_SYMBOLS = 30, 0.02
_MOST_NAMED = 3


def correlation(a: Floats, b: Floats) -> tuple[float, int]:
    """Correlation over the known pairs, 0 of few of them, and their number."""
    is_known = np.isfinite(a) & np.isfinite(b)
    n = int(is_known.sum())
    if n < LEAST_VALUES:
        return 0.0, n
    a, b = a[is_known] - a[is_known].mean(), b[is_known] - b[is_known].mean()
    size = math.sqrt((a @ a) * (b @ b))
    return (float(a @ b) / size if size > 0 else 0.0), n


def _limit(n: int, n_tests: int) -> float:
    """Correlation of n values that is found, if it is one of so many."""
    errors = max(_LEAST_ERRORS, float(norm.isf(_LEVEL / 2 / max(n_tests, 1))))
    return max(_LEAST_CORRELATION, errors / math.sqrt(max(n, 1)))


def lagged(residuals: Floats, lag: int, groups: Integers) -> Floats:
    """Residuals from row `lag` on, NaN where the row so long before is of another sequence."""
    return np.where(groups[lag:] == groups[:-lag], residuals[lag:], np.nan)


def memory_of(residuals: Floats, groups: Integers) -> tuple[int, float]:
    """Lag of the largest autocorrelation, and the autocorrelation in units of all rows."""
    n = max(int(np.isfinite(residuals).sum()), 1)
    best = 1, 0.0
    for lag in range(1, _MOST_LAGS + 1):
        rho, n_pairs = correlation(lagged(residuals, lag, groups), residuals[:-lag])
        # Short sequences have fewer pairs.
        rho *= math.sqrt(n_pairs / n)
        best = max(best, (lag, rho), key=lambda pair: abs(pair[1]))
    return best


def _share_of_groups(values: Floats, groups: Integers) -> tuple[float, float]:
    """Share of the variance between groups, and its standard errors."""
    is_known = np.isfinite(values)
    groups, values = groups[is_known], values[is_known]
    sizes = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(sizes, 1)
    between = (sizes * (means - values.mean()) ** 2).sum()
    share = float(between / max(((values - values.mean()) ** 2).sum(), 1e-12))
    dof = max(int((sizes > 0).sum()) - 1, 1)
    return share, (share * len(values) - dof) / math.sqrt(2 * dof)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What residuals may depend on, for all rows.

    Attributes
    ----------
    inputs : dict of {str: ndarray of shape (n_samples,)}
        By name.
    groups : ndarray of shape (n_samples,), int
        Number of the sequence.
    starts : ndarray of int
    """

    inputs: dict[str, Floats]
    groups: Integers
    starts: Integers

    def features(self) -> dict[str, dict[str, Floats]]:
        """Inputs and times by name, and squares and products of inputs, by kind of finding."""
        centred = {name: values - np.nanmean(values) for name, values in self.inputs.items()}
        names = list(centred)
        squares = {f"the square of {name}": values**2 for name, values in centred.items()}
        products: dict[str, Floats] = {}
        for i, one in enumerate(names):
            products |= {f"{other} * {one}": centred[other] * centred[one] for other in names[:i]}
        rows = np.arange(len(self.groups), dtype=np.float64)
        times = {"the row number": rows}
        if len(self.starts) > 1:
            times["the time in the sequence"] = rows - self.starts[self.groups]
        return {"bend": squares, "product": products, "input": self.inputs, "time": times}


@dataclass(frozen=True, eq=False)
class ColumnResiduals:
    """Residuals of a column of numbers.

    Attributes
    ----------
    label : str or int
    kind : str
        "real", "counts" or "binary".
    ahead, inside : ndarray of shape (n_samples,)
        Residuals given the rows before, and given the own state.
    values : ndarray of shape (n_samples,)
        Encoded: without the column's offset, with the noise of the fit (`has_noise`).
    zeros : ndarray of shape (n_samples,)
        Probabilities of 0, of counts and binary values, given the rows before.
    slopes : ndarray of shape (n_samples, n_states), optional
        Derivatives of the probability of a binary 1 by the log odds of states, NaN where unknown.
    has_noise : bool
        Whether the fit added noise to the values.
    has_clusters : bool
        Whether states are pieces of regimes, and firm: clusters, whatever their shape.
    """

    label: str | int
    kind: str
    ahead: Floats
    inside: Floats
    values: Floats
    zeros: Floats
    slopes: Floats | None = None
    has_noise: bool = False
    has_clusters: bool = False

    def findings(self, near: Surroundings) -> list[Finding]:
        """Findings about this column, causes before effects, the column named in each."""
        is_known = np.isfinite(self.ahead)
        known = self.ahead[is_known]
        if len(known) < LEAST_VALUES or np.ptp(known) == 0:
            return []
        found = [*self._dependence(near)]
        are_bent = any(f.kind in ("bend", "product") for f in found)
        values = [*self._exact_values(is_known), *self._zeros(is_known)][:1]
        causes = [*values, *self._lapses(near, is_known)]
        if self.kind != "binary" and not (are_bent or values):
            causes += self._shape(known)
        found += causes
        if not are_bent:
            found += self._memory(near, {f.kind for f in found})
        if any(KINDS[f.kind].makes_dependence for f in causes):
            found = [f for f in found if f.kind not in ("memory", "time", "spread")]
        return [replace(f, column=self.label) for f in found]

    def _dependence(self, near: Surroundings) -> Iterator[Finding]:
        features = near.features()
        kind_of = {name: kind for kind, named in features.items() for name in named}
        sizes = np.minimum(self.ahead**2, _MOST_SQUARE)
        n = int(np.isfinite(self.ahead).sum())
        tests: dict[tuple[str, str], float] = {}
        for what, y in (("Residuals", self.ahead), ("Sizes of residuals", sizes)):
            for named in features.values():
                tests |= {(what, name): correlation(y, x)[0] for name, x in named.items()}
        limit = _limit(n, len(tests))
        large = {key: rho for key, rho in tests.items() if abs(rho) > limit}
        bent = {k: rho for k, rho in large.items() if kind_of[k[1]] in ("bend", "product")}
        # A mean that bends changes sizes, too.
        bent = {k: rho for k, rho in bent.items() if k[0] == "Residuals"} or bent
        if large:
            (what, name), rho = max((bent or large).items(), key=lambda item: abs(item[1]))
            seen = f"{what} follow {name} (correlation {rho:.2f})"
            if what != "Residuals":
                yield Finding("spread", abs(rho), seen, "divide the values by a scale")
            elif bent:
                how = "the product" if kind_of[name] == "product" else name
                yield Finding(kind_of[name], abs(rho), seen, f"add {how} to the inputs")
            elif kind_of[name] == "input":
                yield Finding("bend", abs(rho), seen, f"add a function of {name} to the inputs")
            else:
                yield _of_time(abs(rho), seen)
        tenths = np.arange(len(self.ahead)) * 10 // len(self.ahead)
        for groups, word in ((tenths, "over time"), (near.groups, "between sequences")):
            for y, what in ((self.ahead, "level"), (sizes, "variance")):
                share, errors = _share_of_groups(y, groups)
                if errors <= _LEAST_F or share <= _LEAST_SHARE:
                    continue
                parts = "tenths of the rows" if groups is tenths else "sequences"
                seen = (
                    f"The {what} of residuals differs {word}: {parts} explain {percent(share)} "
                    "of their variance"
                )
                if groups is not tenths:
                    yield Finding("sequences", share, seen, "center the values by sequence")
                elif what == "level":
                    yield _of_time(share, seen)
                else:
                    yield Finding("spread", share, seen, "divide the values by a moving scale")

    def _memory(self, near: Surroundings, found: set[str]) -> Iterator[Finding]:
        limit = _limit(int(np.isfinite(self.ahead).sum()), _MOST_LAGS)
        lag, rho = memory_of(self.ahead, near.groups)
        if abs(rho) > limit:
            seen = f"Residuals depend on residuals {_before(lag)} (correlation {rho:.2f})"
            yield Finding("memory", abs(rho), seen, "give the past as an input", lag=lag)
        lag, rho = memory_of(np.minimum(self.ahead**2, _MOST_SQUARE), near.groups)
        if abs(rho) > limit and not found & {"dispersion", "underdispersion", "outliers"}:
            seen = f"Sizes of residuals depend on sizes {_before(lag)} (correlation {rho:.2f})"
            yield Finding("spread", abs(rho), seen, "divide the values by a moving scale")

    def _exact_values(self, is_known: Flags) -> Iterator[Finding]:
        """Exact values that are more frequent than the values near them."""
        if self.has_noise or self.kind == "binary":
            return
        values, n_rows = np.unique(self.values[is_known], return_counts=True)
        if len(values) < 8:
            return
        n = int(n_rows.sum())
        least = _LEAST_ATOM * n
        places = {}
        if n_rows[0] >= max(least, _OF_NEXT * n_rows[1:4].max()):
            places[0] = "the lowest"
        if n_rows[-1] >= max(least, _OF_NEXT * n_rows[-4:-1].max()):
            places[len(values) - 1] = "the highest"
        i = int(n_rows.argmax())
        rest = np.delete(n_rows, i)
        if n_rows[i] >= max(least, _OF_NEAR * rest[max(i - 2, 0) : i + 2].max()):
            places.setdefault(i, "the most frequent")
        if not places:
            return
        i = max(places, key=lambda i: n_rows[i])
        share, expected = n_rows[i] / n, 0.0
        if self.kind == "counts" and values[i] == 0:
            expected = float(self.zeros[is_known].mean())
        error = math.sqrt(expected * (1 - expected) / n)
        if share - expected > max(_LEAST_ATOM, _SIGNIFICANT * error):
            seen = (
                f"{percent(share)} of the values are exactly {values[i]:.6g}, {places[i]} "
                f"({percent(expected)} expected)"
            )
            remedy = (
                f"add a column of whether the value is {values[i]:.6g}, and set these values to "
                "NaN (ProductEmission)"
            )
            yield Finding("values", float(share), seen, remedy)

    def _zeros(self, is_known: Flags) -> Iterator[Finding]:
        if self.kind != "counts" or self.ahead[is_known].var() >= _LEAST_DISPERSION:
            return
        share, expected = (self.values[is_known] == 0).mean(), self.zeros[is_known].mean()
        error = math.sqrt(expected * (1 - expected) / is_known.sum())
        if share - expected > max(_LEAST_ATOM, _SIGNIFICANT * error):
            seen = f"{percent(share)} of the values are zero ({percent(expected)} expected)"
            remedy = (
                "add a column of whether a value is zero, and set zeros to NaN (ProductEmission)"
            )
            yield Finding("zeros", float(share - expected), seen, remedy)

    def _lapses(self, near: Surroundings, is_known: Flags) -> Iterator[Finding]:
        """Rows of yes and no that do not depend on the inputs, by a score test.

        A share of lapses moves every probability towards one half; what weights of the states
        can do as well is left out.
        """
        if self.slopes is None or not near.inputs:
            return
        features = np.column_stack([np.ones(len(self.values)), *near.inputs.values()])
        rows = is_known & np.isfinite(self.slopes).all(axis=1) & np.isfinite(features).all(axis=1)
        probs = np.clip(1 - self.zeros[rows], _LEAST_PROB, 1 - _LEAST_PROB)
        spread = np.sqrt(probs * (1 - probs))
        by_weight = self.slopes[rows][:, :, None] * features[rows][:, None]
        by_weight = by_weight.reshape(len(probs), -1) / spread[:, None]
        toward = (0.5 - probs) / spread
        toward -= by_weight @ np.linalg.lstsq(by_weight, toward, rcond=None)[0]
        information = float(toward @ toward)
        score = float((self.values[rows] - probs) / spread @ toward)
        if score > _OF_LAPSES * math.sqrt(information) > 0:
            share = score / information
            seen = (
                "Values that the inputs do not predict are too frequent, by "
                f"{score / information**0.5:.1f} standard errors: lapses on some "
                f"{percent(share)} of the rows make weights too small"
            )
            remedy = "read weights, and their intervals, as lower limits"
            yield Finding("lapses", share, seen, remedy)

    def _shape(self, known: Floats) -> Iterator[Finding]:
        n, variance = len(known), float(known.var())
        skewness, kurtosis = _moments(known)
        inside = self.inside[np.isfinite(self.inside)]
        is_far = np.abs(inside) > _FAR
        n_far, expected = int(is_far.sum()), _RARE * len(inside)
        is_rare = expected + _SIGNIFICANT * math.sqrt(expected) + 3 < n_far
        is_rare &= n_far <= _MOST_OUTLIERS * len(inside)
        peak = _moments(inside)[1]
        if self.kind == "counts":
            error = math.sqrt(max(kurtosis - 1, 0.5) / n)
            if variance > max(_LEAST_DISPERSION, 1 + _SIGNIFICANT * error) and not (
                is_rare and peak > 8
            ):
                seen = (
                    "Counts vary more than the model allows (residuals have variance "
                    f"{variance:.1f}, not 1)"
                )
                yield Finding("dispersion", variance, seen, "try counts of any dispersion")
                return
            if variance < min(_MOST_DISPERSION, 1 - _SIGNIFICANT * math.sqrt(2 / n)):
                seen = (
                    "Counts vary less than the model allows (residuals have variance "
                    f"{variance:.2f}, not 1)"
                )
                yield Finding("underdispersion", 1 / variance, seen, "try a normal distribution")
                return
        error = math.sqrt(6 / n)
        # A gamma distribution has 1.5 skewness^2 = kurtosis - 3; heavy tails are skewed too,
        # in a sample.
        is_skewed = abs(skewness) > max(_LEAST_SKEWNESS, _SIGNIFICANT * error)
        is_skewed &= skewness**2 > (kurtosis - 3) / 3
        skew = Finding(
            "skew",
            abs(skewness),
            f"The noise is more skewed than the model allows ({skewness:+.1f})",
            "try another noise",
        )
        skewness_of_rest, kurtosis_of_rest = _moments(inside[~is_far])
        is_shape = not self.has_clusters
        if abs(skewness_of_rest) > 0.7 and kurtosis_of_rest < 5 and is_skewed and is_shape:
            yield skew
        elif is_rare and peak > 5:
            rows = np.flatnonzero(np.isfinite(self.inside))[is_far]
            named = ", ".join(map(str, rows[:_MOST_NAMED]))
            more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
            seen = (
                f"{n_far} values are outliers of their regime, {expected:.1f} are expected: "
                f"rows {named}{more}"
            )
            size, remedy = n_far / len(inside), "set them to missing"
            yield Finding("outliers", size, seen, remedy, rows=rows)
        elif is_skewed and is_shape:
            yield skew
        elif kurtosis > max(_LEAST_KURTOSIS, 3 + _SIGNIFICANT * math.sqrt(24 / n)) and is_shape:
            seen = f"The noise has heavier tails than the model allows (kurtosis {kurtosis:.1f})"
            yield Finding("tails", kurtosis, seen, "try noise of heavy tails")
        elif (
            kurtosis < min(_MOST_LIGHT, 3 - 3.5 * math.sqrt(24 / n))
            and is_shape
            and not self.has_noise
        ):
            seen = f"The noise has lighter tails than the model allows (kurtosis {kurtosis:.1f})"
            remedy = "expect intervals of forecasts that are too wide at the ends"
            yield Finding("light_tails", 1 / kurtosis, seen, remedy)


def _before(lag: int) -> str:
    return f"{lag} row{'s' * (lag > 1)} before"


def _of_time(size: float, seen: str) -> Finding:
    return Finding("time", size, seen, "give time as an input, or subtract a moving median")


def _moments(values: Floats) -> tuple[float, float]:
    """Skewness and kurtosis; those of a normal law of few values."""
    spread = values.std() if len(values) > LEAST_VALUES else 0.0
    if spread == 0:
        return 0.0, 3.0
    scaled = (values - values.mean()) / spread
    return float((scaled**3).mean()), float((scaled**4).mean())


def columns_that_correlate(
    inside: Floats, is_free: Flags, labels: Sequence[str | int], what: str
) -> Iterator[Finding]:
    """Finding about two columns that are correlated within states (`what`), but not in the model.

    `is_free` masks the pairs without a covariance.
    """
    best, pair = 0.0, (0, 0)
    for a, b in zip(*np.nonzero(np.triu(is_free, 1)), strict=True):
        rho, n = correlation(inside[:, a], inside[:, b])
        if abs(rho) > max(_OF_COLUMNS, _SIGNIFICANT / math.sqrt(max(n, 1)), abs(best)):
            best, pair = rho, (int(a), int(b))
    if best:
        seen = (
            f"Columns {labels[pair[0]]} and {labels[pair[1]]} are correlated within {what} "
            f"({best:+.2f})"
        )
        yield Finding("columns", abs(best), seen, "read the regimes (hmm.regimes_)")


def columns_that_lead(
    ahead: Floats, groups: Integers, labels: Sequence[str | int]
) -> Iterator[Finding]:
    """Finding about residuals that follow those of another column, a row or two before."""
    n = ahead.shape[1]
    if not 1 < n <= _MOST_CROSSED:
        return
    tests = {
        (a, b, lag): correlation(lagged(ahead[:, b], lag, groups), ahead[:-lag, a])
        for a in range(n)
        for b in range(n)
        for lag in (1, 2)
        if a != b
    }
    errors = float(norm.isf(_LEVEL / 2 / len(tests)))
    large = {
        key: rho
        for key, (rho, n_pairs) in tests.items()
        if abs(rho) > max(_LEADS, errors / math.sqrt(max(n_pairs, 1)))
    }
    if large:
        (a, b, lag), rho = max(large.items(), key=lambda item: abs(item[1]))
        seen = (
            f"Residuals of column {labels[b]} follow residuals of column {labels[a]} "
            f"{_before(lag)} (correlation {rho:+.2f})"
        )
        remedy = f"give the past of column {labels[a]} as an input"
        yield Finding("leads", abs(rho), seen, remedy, lag=lag)


def symbols_before(
    symbols: Array, path: Integers, groups: Integers, label: str | int
) -> Iterator[Finding]:
    """Finding about symbols that depend, within states, on the symbol one to three rows before.

    A missing symbol is -1.
    """
    found = np.unique(symbols[symbols >= 0])
    if not 2 <= len(found) <= _MOST_SYMBOLS:
        return
    is_symbol = symbols[:, None] == found
    best, at = 0.0, 1
    for lag in (1, 2, 3):
        is_same = (groups[lag:] == groups[:-lag]) & (symbols[lag:] >= 0) & (symbols[:-lag] >= 0)
        now, before = (rows[is_same].astype(float) for rows in (is_symbol[lag:], is_symbol[:-lag]))
        states = path[lag:][is_same]
        # Sums of products, of squares, and the variances of the products if nothing depends.
        products, errors = np.zeros((2, len(found), len(found)))
        squares, n = np.zeros((2, len(found))), 0
        for state in np.unique(states):
            rows = states == state
            if rows.sum() < _LEAST_OF_STATE:
                continue
            a, b = now[rows] - now[rows].mean(axis=0), before[rows] - before[rows].mean(axis=0)
            products += a.T @ b
            own = (a**2).sum(axis=0), (b**2).sum(axis=0)
            errors += np.outer(*own) / rows.sum()
            squares += own
            n += int(rows.sum())
        if n < LEAST_VALUES:
            continue
        sizes = np.outer(*squares)
        is_common = sizes > (_COMMON_SYMBOLS * n) ** 2
        least = max(_SIGNIFICANT, float(norm.isf(_LEVEL / 6 / max(is_common.sum(), 1))))
        is_common &= np.abs(products) > least * np.sqrt(errors)
        rho = np.where(is_common, products / np.sqrt(np.maximum(sizes, 1e-9)), 0.0)
        if np.abs(rho).max() > max(best, _OF_SYMBOLS):
            best, at = float(np.abs(rho).max()), lag
    if best:
        seen = (
            f"Within states a symbol of column {label} depends on the symbol {_before(at)} "
            f"(correlation {best:.2f})"
        )
        remedy = f"pair every symbol with the symbol {_before(at)}"
        yield Finding("symbols", best, seen, remedy, column=label)
