"""Offsets and scales of subjects, with their intervals."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from skihmm._data.validation import check_choice, check_probability
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import Floats
from skihmm._using.fitted import fitted_of
from skihmm._using.partitions import repeated_draws
from skihmm.emissions._subjects import WithSubjects, subjects_by_column
from skihmm.inspection._display import Display
from skihmm.inspection._room import fitted_text
from skihmm.inspection._style import (
    check_fitted_hmm,
    column_names,
    ink,
    lay_out,
    places_of_columns,
    set_label,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


# Most points of the name of a subject.
_NAME_ROOM = 150.0


@dataclass(eq=False, repr=False)
class SubjectDisplay(Display):
    """Levels, or scales, of subjects, with posterior intervals.

    A dot is the posterior mean of a subject's offset, or scale, in one column, and the
    line is the interval.  Subjects with zero (scales: one) in the interval may equal the
    mean subject.

    Use :meth:`from_estimator` to create and plot one.

    Parameters
    ----------
    subjects : sequence of str
    means : ndarray of shape (n_subjects,)
    intervals : ndarray of shape (2, n_subjects)
    name : str
        What is shown, the label of the axis.
    usual : float, default=0.0
        The value of the mean subject, a vertical line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib artists

    See Also
    --------
    EmissionDisplay : Draw the levels of states.
    skihmm.posterior.parameter_intervals : Intervals of the parameters as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import NormalInverseGamma
    >>> from skihmm.inspection import SubjectDisplay
    >>> rng = np.random.default_rng(0)
    >>> states, who = np.arange(300) // 25 % 2, np.arange(300) // 75
    >>> X = np.column_stack([rng.normal(5 * states + [0, 3, -2, 9][who[0]]), who])
    >>> emission = NormalInverseGamma(subject_feature=1)
    >>> hmm = HCRPHMM(emission=emission, n_burnin=50, n_draws=20, random_state=0)
    >>> display = SubjectDisplay.from_estimator(hmm.fit(X, groups=who))
    >>> display.intervals.shape
    (2, 4)
    """

    subjects: Sequence[str]
    means: Floats
    intervals: Floats
    _: KW_ONLY
    name: str
    usual: float = 0.0

    @classmethod
    def from_estimator(
        cls,
        hmm: HCRPHMM,
        *,
        column: int | str = 0,
        kind: str = "offset",
        part: str | None = None,
        probability: float = 0.95,
        ax: Axes | None = None,
    ) -> SubjectDisplay:
        """Plot the subjects of a fitted model.

        Parameters
        ----------
        hmm : HCRPHMM
            Fitted, with an emission that has ``subject_feature``.
        column : int or str, default=0
            Index among the columns that the emission observes, or name.
        kind : {"offset", "scale"}, default="offset"
        part : str, default=None
            The part of a :class:`~skihmm.emissions.ProductEmission`.
        probability : float, default=0.95
            Probability of the intervals.
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : SubjectDisplay
        """
        fitted = fitted_of(check_fitted_hmm(hmm))
        draws, weights = fitted.draws.weighted()
        parts = {each.prefix.removesuffix("__"): each for each in fitted.emission.parts}
        if part is not None and "" in parts:
            raise ValueError(f"part={part!r}, but the emission has no parts.")
        found = parts.get(check_choice("part", part, tuple(parts)) if part is not None else "")
        emission = fitted.emission if found is None else found.emission
        listed = subjects_by_column(fitted.emission, len(fitted.observed))
        columns = [columns for own, columns in listed if own is emission]
        if found is None or not columns or not isinstance(emission, WithSubjects):
            raise ValueError(
                f"{type(emission).__name__} has no subjects; expected an emission with "
                "subject_feature, or part=, the name of such a part."
            )
        records = [found.record(draw.emission) for draw in draws]
        names = [column_names(fitted)[c] for c in fitted.observed[columns[0]]]
        place = places_of_columns(column, names, "column")[0]
        is_scale = check_choice("kind", kind, ("offset", "scale")) == "scale"
        if is_scale and not emission.subject_scale:
            raise ValueError('kind="scale", but the emission has subject_scale=False.')
        level = check_probability("probability", probability)
        numbers = [emission.subject_numbers(record) for record in records]
        values = np.array([each.scales if is_scale else each.offsets for each in numbers])[
            :, :, place
        ]
        which = repeated_draws(weights, max(1000, len(values)))
        ends = np.quantile(values[which], [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return cls(
            [str(subject) for subject in emission.subjects_],
            np.average(values, axis=0, weights=weights),
            ends,
            name=f"{kind} of {names[place]}",
            usual=float(is_scale),
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        height = min(12.0, 1.0 + 0.25 * len(self.subjects))
        (self.ax_,) = self._panels(ax, 1, (5.6, height))
        y = np.arange(len(self.subjects))
        size = self.ax_.yaxis.get_major_ticks(1)[0].label1.get_fontsize()
        names = [fitted_text(subject, _NAME_ROOM, size) for subject in self.subjects]
        self.ax_.axvline(self.usual, color=ink(0.7), lw=1)
        self.lines_ = [
            self.ax_.hlines(y, *self.intervals, color=ink(0.3), lw=1.5),
            *self.ax_.plot(self.means, y, "o", color="#0072B2", ms=5),
        ]
        self.ax_.set_yticks(y, names)
        self.ax_.invert_yaxis()
        lay_out(self.ax_)
        set_label(self.ax_.xaxis, self.name)
        return self
