"""Regressions of the states: coefficients, and means as functions of an input."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import expit

from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_integer
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats
from skihmm._using.decoding import frozen_model
from skihmm._using.stays import stay_probabilities, unbounded_coefficients
from skihmm.emissions import (
    AutoregressiveNormal,
    BaseEmission,
    BernoulliRegression,
    NegativeBinomialRegression,
)
from skihmm.emissions._encoding import encode
from skihmm.emissions._given import typical_given
from skihmm.emissions._parts import column_offsets
from skihmm.inspection._display import Display
from skihmm.inspection._emissions import at_inputs
from skihmm.inspection._style import check_fitted_hmm, column_names, state_colours
from skihmm.posterior._parameters import sampled_parameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS = 101
_N_SAMPLES = 1000
# Standard deviations of the inputs that a curve reaches to both sides.
_REACH = 2.5


@dataclass(eq=False, repr=False)
class RegressionDisplay(Display):
    """Regressions on inputs of the states of the selected draw.

    By default the coefficients of every input, with bars of two posterior standard
    deviations to both sides if paths of draws are stored.  Or, for one input, the mean
    observation of every state as a function of it, the others at their means: of binary
    observations the probability of 1, the psychometric curve of a decision.  It has a
    band of 95 per cent, unless observations are choices.

    Or the same of staying, if it depends on inputs: coefficients, and the probability of
    every state to be in it in the next step too.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    names : list of str, of length n_inputs
        The inputs.
    coefficients : ndarray of shape (n_states, n_inputs)
    deviations : ndarray of shape (n_states, n_inputs) or None
        Their posterior standard deviations.
    output : str
        Name of the observation, or "staying".
    curve : (str, ndarray of shape (n_points,), ndarray of shape (n_states, n_points)) \
or None, default=None
        Name of an input, its values, and means.  With it the curve is plotted.
    others : str, default=""
        At which values of the other inputs the curve is, its title.
    intercepts : ndarray of shape (n_states,) or None, default=None
        Shown in the legend, with their deviations.
    intercept_deviations : ndarray of shape (n_states,) or None, default=None
        Their posterior standard deviations.
    band : ndarray of shape (2, n_states, n_points) or None, default=None
        Ends of intervals of the curve.
    note : str, default=""
        What is to be said of the coefficients; a part of the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib artists
        One for every state.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import BernoulliRegression
    >>> from skihmm.inspection import RegressionDisplay
    >>> rng = np.random.default_rng(0)
    >>> stimulus = rng.normal(size=200)
    >>> X = np.column_stack([stimulus > rng.normal(size=200), stimulus])
    >>> emission = BernoulliRegression(input_features=[1])
    >>> hmm = HCRPHMM(emission=emission, n_burnin=20, n_draws=5, random_state=0).fit(X)
    >>> RegressionDisplay.from_estimator(hmm, feature=0).curve[2].shape
    (1, 101)
    """

    names: list[str]
    coefficients: Floats
    deviations: Floats | None
    _: KW_ONLY
    output: str
    curve: tuple[str, Floats, Floats] | None = None
    others: str = ""
    intercepts: Floats | None = None
    intercept_deviations: Floats | None = None
    band: Floats | None = None
    note: str = ""

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        output: int | str = 0,
        feature: int | str | None = None,
        ax: Axes | None = None,
    ) -> RegressionDisplay:
        """Plot the regressions of a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted, with an emission that has ``input_features``, or transitions.
        output : int or "staying", default=0
            Which of the observed columns, of choices which regression; "staying": that of
            the transitions.
        feature : int or str, default=None
            Index in `input_features`, or name, of the input of the curve; None:
            coefficients.
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : RegressionDisplay
        """
        emission = check_fitted_hmm("hmm", hmm).emission_
        if output == "staying":
            return _of_staying(cls, hmm, feature).plot(ax)
        scales = getattr(emission, "input_scales_", np.empty(0))
        if not len(scales):
            raise ValueError(
                f"output={output!r}, and {type(emission).__name__} has no inputs; "
                "expected an emission with input_features, or output='staying' for those "
                "of transitions."
            )
        n = len(scales)
        all_names = column_names(hmm)
        columns = hmm._fit_state.given.columns[hmm._fit_state.given.of_emission[:n]]
        names = [all_names[c] for c in columns]
        n_outputs = emission.coefficients_.shape[1]
        output = check_integer("output", output, 0)
        if output >= n_outputs:
            raise ValueError(f"output={output}; expected 0 to {n_outputs - 1}.")
        observed = hmm._observed_columns
        place = min(output, len(observed) - 1)
        # Coefficients of earlier rows come first.
        coefficients = emission.coefficients_[:, output, -n:]
        samples, deviations = {}, [None, None]
        if hmm.draws_.has_states:
            samples = sampled_parameters(hmm, _N_SAMPLES)
            deviations = [
                np.nanstd(samples[name][:, :, output], axis=0)
                for name in ("coefficients_", "intercepts_")
            ]
        curve, band, others = None, None, ""
        if feature is not None:
            i = _place(feature, names)
            curve = (names[i], *_curve(hmm, i, output))
            others = at_inputs(emission, i)
            if samples:
                band = _band(emission, samples, i, output, curve[1])
        return cls(
            names,
            coefficients,
            None if deviations[0] is None else deviations[0][:, -n:],
            output=all_names[observed[place]],
            curve=curve,
            others=others,
            intercepts=emission.intercepts_[:, output],
            intercept_deviations=deviations[1],
            band=band,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        (self.ax_,) = self._panels(ax, 1, (6, 4))
        self.lines_ = []
        n_states, n = self.coefficients.shape
        for k, colour in enumerate(state_colours(n_states)):
            look = {"color": colour, "label": f"state {k}"}
            if self.intercepts is not None:
                look["label"] += f", intercept {self.intercepts[k]:.3g}"
            if self.intercept_deviations is not None:
                look["label"] += f" \u00b1 {self.intercept_deviations[k]:.2g}"
            if self.curve is not None:
                if self.band is not None:
                    self.ax_.fill_between(
                        self.curve[1], *self.band[:, k], color=colour, alpha=0.2, lw=0
                    )
                self.lines_ += self.ax_.plot(self.curve[1], self.curve[2][k], **look)
                continue
            at = np.arange(n) + 0.6 * ((k + 0.5) / n_states - 0.5)
            bars = None if self.deviations is None else 2 * self.deviations[k]
            self.lines_.append(self.ax_.errorbar(at, self.coefficients[k], bars, fmt="o", **look))
        if self.curve is not None:
            kind = "probability" if self.output == "staying" else "mean"
            self.ax_.set(xlabel=self.curve[0], ylabel=f"{kind} of {self.output}")
        else:
            self.ax_.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
            self.ax_.set_xticks(np.arange(n), self.names)
            self.ax_.set_ylabel(f"coefficient for {self.output}")
        title = [self.others if self.curve is not None else "", self.note]
        if any(title):
            text = "\n".join(filter(None, title))
            self.ax_.set_title(text, fontsize="small", wrap=True)
        self.ax_.legend()
        return self


def _place(feature: int | str, names: list[str]) -> int:
    places = {name: i for i, name in enumerate(names)}
    i = places.get(feature, len(names)) if isinstance(feature, str) else feature
    if not check_integer("feature", i, 0) < len(names):
        raise ValueError(f"feature={feature!r}; expected one of {names}.")
    return i


def _of_staying(
    display: type[RegressionDisplay], hmm: HCRPHMM, feature: int | str | None
) -> RegressionDisplay:
    """Display of coefficients of staying, or of its probability by one input."""
    columns = hmm._fit_state.given.stay_columns
    transitions = hmm.transitions_
    means, scales = transitions.input_means_, transitions.input_scales_
    if not len(columns) or means is None or scales is None:
        raise ValueError(
            "output='staying', but staying does not depend on inputs; expected "
            "transitions with input_features."
        )
    names = [column_names(hmm)[c] for c in columns]
    curve = band = inputs = None
    if feature is not None:
        i = _place(feature, names)
        inputs = np.zeros((_N_POINTS, len(names)))
        inputs[:, i] = np.linspace(-_REACH, _REACH, _N_POINTS)
        x = means[i] + inputs[:, i] * scales[i]
        curve = names[i], x, stay_probabilities(hmm._selected, inputs).T
    samples = {}
    if hmm.draws_.has_states:
        samples = sampled_parameters(hmm, _N_SAMPLES, inputs=inputs)
        if inputs is not None:
            drawn = samples["stay_probabilities"]
            band = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    deviations = [
        np.nanstd(samples[name], axis=0) if samples else None
        for name in ("stay_coefficients_", "stay_intercepts_")
    ]
    unbounded = "; ".join(unbounded_coefficients(hmm))
    note = f"data do not bound coefficients: {unbounded}" if unbounded else ""
    return display(
        names,
        hmm.stay_coefficients_,
        deviations[0],
        output="staying",
        curve=curve,
        others="other inputs at their means" if len(names) > 1 else "",
        intercepts=hmm.stay_intercepts_,
        intercept_deviations=deviations[1],
        band=band,
        note=note,
    )


def _band(
    emission: BaseEmission, samples: dict[str, Floats], i: int, output: int, x: Floats
) -> Floats | None:
    """Ends of intervals of the means at values of an input; None for choices."""
    inverse_links = (
        (AutoregressiveNormal, np.asarray),
        (BernoulliRegression, expit),
        (NegativeBinomialRegression, np.exp),
    )
    found = [link for kind, link in inverse_links if isinstance(emission, kind)]
    if not found:
        return None
    coefficients = samples["coefficients_"][:, :, output]
    n = len(emission.input_scales_)
    at = np.array(typical_given(emission)[:n], dtype=float)
    n_lagged = coefficients.shape[2] - n
    if n_lagged:
        # Earlier rows are at their means.
        means = emission._units[0] + emission.offset_
        at = np.append(np.tile(means, n_lagged // len(means)), at)
    slopes = coefficients[..., n_lagged + i, None]
    predictors = samples["intercepts_"][:, :, output] + coefficients @ at
    predictors = predictors[..., None] + slopes * (x - at[n_lagged + i])
    return np.asarray(np.nanquantile(found[0](predictors), [0.025, 0.975], axis=0))


def _curve(hmm: HCRPHMM, i: int, output: int) -> tuple[Floats, Floats]:
    """Values of an input, and by state the means there."""
    emission, draw = hmm.emission_, hmm.draws_[hmm._best]
    given = np.array([typical_given(emission)] * _N_POINTS, dtype=float)
    span = _REACH * emission.input_scales_[i]
    given[:, i] += np.linspace(-span, span, _N_POINTS)
    n_features = len(hmm._observed_columns)
    row = np.full((_N_POINTS, n_features), np.nan)
    starts = np.arange(_N_POINTS)
    codes = encode(emission, row, starts, given=given)
    frozen = frozen_model(draw, Sequences(codes[:0], starts[:0]), emission)
    predictives = frozen.predictives(codes[:, n_features:])
    column = predictives[min(output, len(predictives) - 1)]
    means = column[:, :-1] if column.ndim == 2 else column[:, :-1, output]
    offset = column_offsets(emission, n_features)[min(output, n_features - 1)]
    return given[:, i], np.transpose(means) + offset
