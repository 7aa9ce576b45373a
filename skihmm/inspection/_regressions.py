"""Regressions of the states: coefficients, and means as functions of an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.validation import check_integer
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats
from skihmm._using.fitted import FittedModel, fitted_of
from skihmm._using.separation import unbounded_coefficients
from skihmm._using.stays import stay_probabilities
from skihmm.emissions._encoding import encode
from skihmm.emissions._given import typical_given
from skihmm.emissions._inputs import WithInputs
from skihmm.inspection._display import Display
from skihmm.inspection._emissions import at_inputs
from skihmm.inspection._room import fitted_text, size_in_points
from skihmm.inspection._style import (
    Look,
    check_fitted_hmm,
    check_states,
    column_names,
    ink,
    lay_out,
    legend_place,
    occupancies,
    set_label,
    set_name_ticks,
    state_colour,
    state_labels,
)
from skihmm.posterior._parameters import mean_and_ends, sampled_parameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS = 101
_N_SAMPLES = 1000
# Standard deviations of the inputs that a curve reaches to both sides.
_REACH = 2.5
# More states are not told apart.
_MOST_STATES = 8


@dataclass(eq=False, repr=False)
class RegressionDisplay(Display):
    """Regressions on inputs of the states.

    By default the coefficients of every input: posterior means over all draws and bars of
    95 %, as by :func:`~skihmm.posterior.parameter_intervals`.  Or, for one input, the mean
    observation of every state as a function of the input, with further inputs at their
    means.  The mean of binary observations is a probability, the psychometric curve of a
    decision.  The curve has a band of 95 %, unless observations are choices.  Without
    stored paths, and for curves of choices, the numbers are of the selected draw.

    Or coefficients of staying, and the probability that a state continues in the next
    step, if staying depends on inputs.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    inputs : list of str, of length n_inputs
        Names of the inputs.
    coefficients : ndarray of shape (n_states, n_inputs)
    intervals : ndarray of shape (2, n_states, n_inputs) or None
        Ends of their intervals.
    output : str
        Name of the observation, or "staying".
    curve : (str, ndarray of shape (n_points,), ndarray of shape (n_states, n_points)) \
or None, default=None
        Name of an input, its values, and means.  With it the curve is plotted.
    others : str, default=""
        Values of the further inputs, the title of a curve.
    intercepts : ndarray of shape (n_states,) or None, default=None
        Shown in the legend, with their intervals.
    intercept_intervals : ndarray of shape (2, n_states) or None, default=None
        Ends of their intervals.
    band : ndarray of shape (2, n_states, n_points) or None, default=None
        Ends of intervals of the curve.
    note : str, default=""
        Remark on the coefficients, a part of the title.
    probability_of : str or None, default=None
        Event whose probability is the curve.  None: the curve is a mean.
    occupancy : ndarray of shape (n_states,) or None, default=None
        Proportion of the steps in each state.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib artists
        One for every state shown.
    states_ : ndarray of int
        The states shown, in the order of the legend.

    See Also
    --------
    EmissionDisplay : Draw emissions without inputs.
    skihmm.posterior.parameter_intervals : Intervals of the coefficients as numbers.

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

    inputs: list[str]
    coefficients: Floats
    intervals: Floats | None
    _: KW_ONLY
    output: str
    curve: tuple[str, Floats, Floats] | None = None
    others: str = ""
    intercepts: Floats | None = None
    intercept_intervals: Floats | None = None
    band: Floats | None = None
    note: str = ""
    probability_of: str | None = None
    occupancy: Floats | None = None

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        output: int | str = 0,
        feature: int | str | None = None,
        states: ArrayLike | None = None,
        names: Mapping[int, str] | None = None,
        ax: Axes | None = None,
    ) -> RegressionDisplay:
        """Plot the regressions of a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted, with an emission that has ``input_features``, or transitions.
        output : int or "staying", default=0
            Index of the observed column, or of the regression of choices.  "staying": the
            regression of the transitions.
        feature : int or str, default=None
            Index in `input_features`, or name, of the input of the curve.  None:
            coefficients.
        states, names, ax
            As in :meth:`plot`.

        Returns
        -------
        display : RegressionDisplay
        """
        fitted = fitted_of(check_fitted_hmm(hmm))
        emission = fitted.emission
        if output == "staying":
            return _of_staying(cls, hmm, feature).plot(ax, states=states, names=names)
        if not isinstance(emission, WithInputs) or not len(emission.input_scales_):
            raise ValueError(
                f"output={output!r}, and {type(emission).__name__} has no inputs; "
                "expected an emission with input_features, or output='staying' for those "
                "of transitions."
            )
        n = len(emission.input_scales_)
        all_names = column_names(fitted)
        columns = fitted.given.columns[fitted.given.of_emission[:n]]
        inputs = [all_names[c] for c in columns]
        of_states = {name: each.values for name, each in emission.state_parameters.items()}
        n_outputs = of_states["coefficients_"].shape[1]
        output = check_integer("output", output, 0)
        if output >= n_outputs:
            raise ValueError(f"output={output}; expected 0 to {n_outputs - 1}.")
        observed = fitted.observed
        observation = all_names[observed[min(output, len(observed) - 1)]]
        samples: dict[str, Floats] = {}
        if fitted.draws.has_states:
            samples = sampled_parameters(fitted, _N_SAMPLES, hmm.random_state)
        curve, band, others = None, None, ""
        if feature is not None:
            i = _place(feature, inputs)
            x, means = _curve(fitted, emission, i, output)
            others = at_inputs(emission, i)
            if samples and (drawn := _drawn_means(emission, samples, i, output, x)) is not None:
                means, *ends = mean_and_ends(drawn)
                band = np.array(ends)
            curve = inputs[i], x, means
        # Coefficients of earlier rows come first.
        own = of_states["coefficients_"][:, output, -n:]
        coefficients, intervals = _over_draws(
            own, samples, "coefficients_", output, slice(-n, None)
        )
        own = of_states["intercepts_"][:, output]
        intercepts, of_intercepts = _over_draws(own, samples, "intercepts_", output)
        return cls(
            inputs,
            coefficients,
            intervals,
            output=observation,
            curve=curve,
            others=others,
            intercepts=intercepts,
            intercept_intervals=of_intercepts,
            band=band,
            probability_of=emission.event(observation, output),
            occupancy=occupancies(hmm),
        ).plot(ax, states=states, names=names)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        states: ArrayLike | None = None,
        names: Mapping[int, str] | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.
        states : array-like of int, default=None
            States to show, in this order.  None: the eight states with the most steps, by
            decreasing occupancy.
        names : mapping of {int: str}, default=None
            Names of states in this picture, such as ``{2: "REM"}``.  States without a name
            keep their numbers.

        Returns
        -------
        self : RegressionDisplay
        """
        n_states = len(self.coefficients)
        labels = state_labels(names, n_states)
        if states is not None:
            self.states_ = check_states(states, n_states)
        else:
            share = np.zeros(n_states) if self.occupancy is None else np.asarray(self.occupancy)
            self.states_ = np.argsort(-share, kind="stable")[:_MOST_STATES].astype(np.intp)
        (self.ax_,) = self._panels(ax, 1, (7, 4))
        self.lines_: list[Any] = []
        for place, k in enumerate(self.states_):
            look = {"color": state_colour(k), "label": self._label(k, labels[k])}
            if self.curve is None:
                self._plot_coefficients(place, k, look)
            else:
                self._plot_curve(self.curve, k, look)
        if self.curve is not None:
            event = self.probability_of
            label = f"mean of {self.output}" if event is None else f"P({event})"
        else:
            self.ax_.axhline(0.0, color=ink(0.7), linewidth=0.8, zorder=0)
            self.ax_.set_xlim(-0.5, len(self.inputs) - 0.5)
            label = f"coefficient for {self.output}"
        n_shown = len(self.states_)
        title = "state" if n_shown == n_states else f"{n_shown} of {n_states} states"
        if self.intercepts is not None:
            title += ": intercept"
        self.ax_.legend(title=title, title_fontsize="small", **legend_place(self.ax_))
        lay_out(self.ax_)
        if self.curve is None:
            set_name_ticks(self.ax_, self.inputs)
        else:
            set_label(self.ax_.xaxis, self.curve[0])
        lay_out(self.ax_)
        title = self.ax_.set_title("", fontsize="small")
        width, size = size_in_points(self.ax_)[0], title.get_fontsize()
        above = [self.others if self.curve is not None else "", self.note]
        title.set_text("\n".join(fitted_text(line, width, size, 4) for line in above if line))
        lay_out(self.ax_)
        set_label(self.ax_.yaxis, label)
        return self

    def _label(self, k: int, label: str) -> str:
        if self.intercepts is None:
            return label
        value = self.intercepts[k]
        if self.intercept_intervals is None:
            return f"{label}: {value:.3g}"
        low, high = self.intercept_intervals[:, k]
        # Two digits of the width, so that the ends differ.
        width = float(high - low)
        n = int(np.clip(1 - np.floor(np.log10(width)), 0, 9)) if 0 < width < np.inf else 2
        return f"{label}: {value:.{n}f} [{low:.{n}f}, {high:.{n}f}]"

    def _plot_coefficients(self, place: int, k: int, look: Look) -> None:
        at = np.arange(len(self.inputs)) + 0.6 * ((place + 0.5) / len(self.states_) - 0.5)
        bars, means = None, self.coefficients[k]
        if self.intervals is not None:
            bars = abs(self.intervals[:, k] - means)
        self.lines_.append(self.ax_.errorbar(at, means, bars, fmt="o", **look))

    def _plot_curve(self, curve: tuple[str, Floats, Floats], k: int, look: Look) -> None:
        _, x, means = curve
        if self.band is not None:
            self.ax_.fill_between(x, *self.band[:, k], color=look["color"], alpha=0.2, lw=0)
        self.lines_ += self.ax_.plot(x, means[k], **look)


def _over_draws(
    selected: Floats, samples: dict[str, Floats], name: str, *place: int | slice
) -> tuple[Floats, Floats | None]:
    """Posterior means of a parameter of the states, and ends of its intervals.

    Without samples they are the numbers of the selected draw, and None.
    """
    if not samples:
        return selected, None
    mean, *ends = mean_and_ends(samples[name][:, :, *place])
    return mean, np.array(ends)


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
    fitted = fitted_of(hmm)
    columns, transitions = fitted.given.stay_columns, fitted.transitions
    means, scales = transitions.input_means_, transitions.input_scales_
    if not len(columns) or means is None or scales is None:
        raise ValueError(
            "output='staying', but staying does not depend on inputs; expected "
            "transitions with input_features."
        )
    names = [column_names(fitted)[c] for c in columns]
    curve = band = inputs = None
    if feature is not None:
        i = _place(feature, names)
        inputs = np.zeros((_N_POINTS, len(names)))
        inputs[:, i] = np.linspace(-_REACH, _REACH, _N_POINTS)
        x = means[i] + inputs[:, i] * scales[i]
        curve = names[i], x, stay_probabilities(fitted.selected, inputs).T
    samples: dict[str, Floats] = {}
    if fitted.draws.has_states:
        samples = sampled_parameters(fitted, _N_SAMPLES, hmm.random_state, inputs)
        if curve is not None:
            means_at, *ends = mean_and_ends(samples["stay_probabilities"])
            curve, band = (*curve[:2], means_at), np.array(ends)
    coefficients, intervals = _over_draws(hmm.stay_coefficients_, samples, "stay_coefficients_")
    intercepts, of_intercepts = _over_draws(hmm.stay_intercepts_, samples, "stay_intercepts_")
    unbounded = "; ".join(unbounded_coefficients(fitted))
    note = f"data do not bound coefficients: {unbounded}" if unbounded else ""
    return display(
        names,
        coefficients,
        intervals,
        output="staying",
        curve=curve,
        others="other inputs at their means" if len(names) > 1 else "",
        intercepts=intercepts,
        intercept_intervals=of_intercepts,
        band=band,
        note=note,
        probability_of="stay",
        occupancy=occupancies(hmm),
    )


def _drawn_means(
    emission: WithInputs, samples: dict[str, Floats], i: int, output: int, x: Floats
) -> Floats | None:
    """Samples of the means at values of an input; None for choices."""
    inverse_link = emission.inverse_link
    if inverse_link is None:
        return None
    coefficients = samples["coefficients_"][:, :, output]
    at = emission.typical_predictors()
    # Coefficients of earlier rows come first.
    i += len(at) - len(emission.input_scales_)
    predictors = samples["intercepts_"][:, :, output] + coefficients @ at
    predictors = predictors[..., None] + coefficients[..., i, None] * (x - at[i])
    return np.asarray(inverse_link(predictors))


def _curve(fitted: FittedModel, emission: WithInputs, i: int, output: int) -> tuple[Floats, Floats]:
    """Values of an input, and by state the means there."""
    given = np.array([typical_given(emission)] * _N_POINTS, dtype=float)
    span = _REACH * emission.input_scales_[i]
    given[:, i] += np.linspace(-span, span, _N_POINTS)
    n_features = len(fitted.observed)
    row = np.full((_N_POINTS, n_features), np.nan)
    codes = encode(emission, row, np.arange(_N_POINTS), given=given)
    model = fitted.model_without_data()
    predictives = model.predictives(codes[:, n_features:])
    column = predictives[min(output, len(predictives) - 1)]
    means = column[:, :-1] if column.ndim == 2 else column[:, :-1, output]
    offset = emission.columns(n_features).offsets[min(output, n_features - 1)]
    return given[:, i], np.transpose(means) + offset
