"""What an emission says of itself: its columns, its parts and the parameters of its states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skihmm._typing import Flags, Floats


class ColumnSpec(NamedTuple):
    """Encoded columns of values: arrays with an entry for every column.

    Parameters
    ----------
    order : ndarray of int
        Index of the column in X without given columns.
    part : ndarray of int
        Index of the part of the emission that has the column.
    numbers : ndarray of int
        Number of the column among the columns of the part.
    kinds : ndarray of str
        "symbols", "binary", "counts" or "real".
    n_symbols : ndarray of int
        Number of symbols in the fit, and 0 for columns of numbers.
    looks_back : ndarray of bool
        Whether values depend on earlier rows.
    correlates : ndarray of bool
        Whether the emission describes correlations with other columns of the part.
    has_noise : ndarray of bool
        Whether the fit added noise to the values, which are rounded.
    offsets : ndarray of float
        Offsets that encoding subtracts, and 0 for symbols.
    periods : ndarray of float
        Periods of angles, and infinity for columns without angles.  For angles,
        ``predictives`` of the statistics are means of ``exp(2 pi i value / period)``.

    See Also
    --------
    BaseEmission.columns : Returns the columns of an emission.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.emissions import VonMises
    >>> emission = VonMises(period=24.0).fit(np.array([[1.0], [2.0]]))
    >>> emission.columns(1).periods
    array([24.])
    """

    order: NDArray[np.intp]
    part: NDArray[np.intp]
    numbers: NDArray[np.intp]
    kinds: NDArray[np.str_]
    n_symbols: NDArray[np.intp]
    looks_back: Flags
    correlates: Flags
    has_noise: Flags
    offsets: Floats
    periods: Floats

    @classmethod
    def of_part(cls, n_columns: int, kind: str, looks_back: bool) -> Self:
        """Columns of an emission that is no product, of one kind."""
        numbers = np.arange(n_columns, dtype=np.intp)
        return cls(
            numbers,
            np.zeros(n_columns, dtype=np.intp),
            numbers,
            np.full(n_columns, kind),
            np.zeros(n_columns, dtype=np.intp),
            np.full(n_columns, looks_back),
            np.zeros(n_columns, dtype=bool),
            np.zeros(n_columns, dtype=bool),
            np.zeros(n_columns),
            np.full(n_columns, np.inf),
        )

    @classmethod
    def joined(cls, specs: Sequence[Self]) -> Self:
        """Columns of one emission after the columns of another one."""
        return cls(*map(np.concatenate, zip(*specs, strict=True)))

    @property
    def are_symbols(self) -> Flags:
        """Mask of the columns of symbols, which have no order."""
        return np.asarray(self.kinds == "symbols")

    @property
    def lacks_symbols(self) -> bool:
        """Whether the fit has seen no symbol of a column of symbols."""
        return bool((self.n_symbols[self.are_symbols] == 0).any())

    @property
    def are_discrete(self) -> Flags:
        """Mask of the columns of symbols or integers."""
        return np.asarray(self.kinds != "real")


class StateNumber(NamedTuple):
    """A number of every state in summaries.

    Parameters
    ----------
    column : int or None
        Column of the number among the columns of the emission.  None: no column.
    word : str
        Name of the number, after the name of the column.
    select : callable
        Selects the number from an array with the axes of the parameter of a state at the
        end.

    See Also
    --------
    StateParameter : An attribute with all its numbers.
    skihmm.posterior.parameter_intervals : Intervals of the numbers.

    Examples
    --------
    >>> from operator import itemgetter
    >>> import numpy as np
    >>> from skihmm.emissions import StateNumber
    >>> number = StateNumber(0, "mean", itemgetter((..., 0)))
    >>> number.select(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 3.])
    """

    column: int | None
    word: str
    select: Callable[[Floats], Floats]


@dataclass(frozen=True)
class StateParameter:
    """A parameter of the states.

    Parameters
    ----------
    values : ndarray of shape (n_states, ...)
    numbers : sequence of StateNumber, default=()
        Numbers of the parameter in summaries.

    See Also
    --------
    StateNumber : One number of a parameter.
    BaseEmission : Base class of emissions, which have `state_parameters`.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.emissions import GammaPoisson
    >>> from skihmm import HCRPHMM
    >>> X = np.repeat([[1], [30], [1], [30]], 10, axis=0)
    >>> hmm = HCRPHMM(emission=GammaPoisson(), n_burnin=20, n_draws=5, random_state=0).fit(X)
    >>> parameter = hmm.emission_.state_parameters["rates_"]
    >>> parameter.values.shape, parameter.numbers[0].word
    ((2, 1), 'rate')
    """

    values: Floats
    numbers: Sequence[StateNumber] = ()


def column_numbers(n_columns: int, word: str) -> list[StateNumber]:
    """A number of every column, of parameters of shape (n_states, n_columns)."""
    return [StateNumber(c, word, itemgetter((..., c))) for c in range(n_columns)]


def deviations(covariances: Floats, word: str = "deviation") -> list[StateNumber]:
    """Square roots of the variances of every column; covariances may be diagonals."""

    def of_column(c: int) -> StateNumber:
        place = (..., c, c) if covariances.ndim == 3 else (..., c)
        return StateNumber(c, word, lambda a: np.sqrt(a[place]))

    return [of_column(c) for c in range(covariances.shape[-1])]
