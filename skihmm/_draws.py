"""Posterior draws: plain arrays, chain and draw first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain as chained
from operator import attrgetter
from operator import index as as_index
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skihmm._log_joint import log_seatings
from skihmm._records import (
    EmissionRecord,
    Hyperparameters,
    ModelRecord,
    ParticleRecord,
    SeatingRecord,
    StateRecord,
    TransitionsRecord,
    map_emission,
    map_seating,
    seatings,
    sorted_seating,
)
from skihmm._typing import Array, Floats, Integers, Labels
from skihmm._validation import check_flag
from skihmm._version import __version__
from skihmm.core._emission import EmissionStats
from skihmm.core._sweep_info import SweepInfo

if TYPE_CHECKING:
    from skihmm.core._emission import Column


def occupancy_order(states: Integers, n_states: int) -> NDArray[np.intp]:
    """States by decreasing occupancy; ties go to the one that occurs first.

    Parameters
    ----------
    states : ndarray of shape (n_samples,)
        Labels ``0 .. n_states - 1``.
    n_states : int

    Returns
    -------
    order : ndarray of shape (n_states,)
    """
    first = np.full(n_states, len(states))
    np.minimum.at(first, states, np.arange(len(states)))
    return np.lexsort((first, -np.bincount(states, minlength=n_states)))


def order_by_occupancy(arrays: StateRecord, known: Labels | None = None) -> StateRecord:
    """Renumber the states of a chain's record by decreasing occupancy.

    As :func:`occupancy_order` says, so equal partitions get equal labels.

    Parameters
    ----------
    arrays : StateRecord
    known : ndarray of shape (n_samples,), optional
        Labels 0, 1, ... of steps whose state is known, -1 for others: these states come
        first, in this order.

    Returns
    -------
    arrays : StateRecord
    """
    n_states = arrays["n_states"]
    states = arrays["states"]
    order = occupancy_order(states, n_states)
    if known is not None:
        labels, steps = np.unique(known, return_index=True)
        order = np.concatenate([states[steps[labels >= 0]], order])
        order = order[np.sort(np.unique(order, return_index=True)[1])]
    label = np.empty(n_states + 1, dtype=np.int32)
    label[order] = np.arange(n_states)
    label[n_states] = n_states  # the row of the start restaurant
    transitions = arrays["transitions"]
    return {
        "n_states": n_states,
        "states": label[states],
        "transitions": {
            **transitions,
            **sorted_seating(
                transitions, label[transitions["rows"]], label[transitions["dishes"]]
            ),
        },
        "emission": map_emission(
            arrays["emission"],
            lambda column: sorted_seating(
                column, label[column["rows"]], column["dishes"]
            ),
            lambda numbers: numbers[order],
        ),
    }


def narrow(values: Integers) -> Integers:
    """Non-negative integers in as few bytes as the largest of them needs.

    Parameters
    ----------
    values : ndarray of int

    Returns
    -------
    values : ndarray
        Of uint8 or uint16; as they are if neither does.
    """
    top = int(values.max(initial=0))
    for dtype in (np.uint8, np.uint16):
        if top <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values


def _widen(values: Integers) -> Integers:
    return values.astype(np.int32)


@dataclass(frozen=True)
class Draw:
    """One posterior draw: a model whose seating is known.

    Parameters
    ----------
    n_states : int
        Number of states that some step is in.
    lp : float
        Log joint probability of states, seating and data given the hyperparameters, nats.
    states : ndarray of shape (n_samples,) or None
        State of every training step, numbered by decreasing occupancy; None with
        ``store_states=False``.
    last_state : int
        State of the last training step.
    transitions : TransitionsRecord
        Cells of the transition seating: ``rows`` (previous state; ``n_states`` is the
        start), ``dishes`` (next state), ``n_customers``, ``n_tables`` and all table
        ``sizes`` in the order of the cells; and the concentrations.
    emission : EmissionRecord
        The emission's statistics.
    sweep : int
        Sweeps that the chain had made.
    info : SweepInfo
        Of the sweeps since the draw before.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> hmm = HCRPHMM(n_burnin=20, n_draws=5, random_state=0).fit([[0], [1]] * 20)
    >>> draw = hmm.draws_[0, -1]
    >>> draw.states[:4], draw.last_state
    (array([0, 1, 0, 1], dtype=int32), 1)
    """

    n_states: int
    lp: float
    states: Integers | None
    last_state: int
    transitions: TransitionsRecord
    emission: EmissionRecord
    sweep: int
    info: SweepInfo

    @property
    def alpha(self) -> float:
        """Lower concentration of the transitions."""
        return self.transitions["alpha"]

    @property
    def gamma(self) -> float:
        """Top concentration of the transitions."""
        return self.transitions["gamma"]

    @property
    def n_tables(self) -> int:
        """Number of tables of the transitions in all."""
        return int(self.transitions["n_tables"].sum())

    @property
    def summed_lp(self) -> float:
        """Log joint probability, summed over seatings with as many tables, nats."""
        return self.lp + log_seatings([self.transitions, *seatings(self.emission)])

    @property
    def arrays(self) -> ModelRecord:
        """The draw as the compiled core takes it."""
        return {
            "n_states": self.n_states,
            "transitions": self.transitions,
            "emission": self.emission,
        }

    def for_particles(self, stats: EmissionStats) -> tuple[list[Column], ParticleRecord]:
        """The draw as particle filters take it.

        Parameters
        ----------
        stats : EmissionStats
            Of the same emission, over any data.

        Returns
        -------
        columns : list
            The emission of every column, with this draw's hyperparameters.
        seating : ParticleRecord
        """
        return stats.columns(self.emission), {
            "n_states": self.n_states,
            "transitions": self.transitions,
            "emission": {"columns": stats.records(self.emission)},
        }

    def _with_integers(self, change: Callable[[Integers], Integers]) -> Draw:
        def changed(record: SeatingRecord) -> SeatingRecord:
            return map_seating(record, change)

        return replace(
            self,
            states=None if self.states is None else change(self.states),
            transitions={**self.transitions, **changed(self.transitions)},
            emission=map_emission(self.emission, changed),
        )

    def compact(self, store_states: bool) -> Draw:
        """The draw in as few bytes as its labels and counts, all non-negative, need.

        Parameters
        ----------
        store_states : bool
            Keep the path.

        Returns
        -------
        draw : Draw
        """
        draw = self if store_states else replace(self, states=None)
        return draw._with_integers(narrow)

    def widened(self) -> Draw:
        """The draw with all integers of 32 bits.

        Returns
        -------
        draw : Draw
        """
        return self._with_integers(_widen)


def _import_arviz() -> ModuleType:
    """ArviZ, or the part of it that knows the format."""
    for name in ("arviz", "arviz_base"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError(
        "to_arviz needs ArviZ, which is not installed: pip install arviz. (to_dict has "
        "the same arrays.)"
    )


class PosteriorDraws:
    """Draws of all chains.

    ``draws[c, d]`` is one :class:`Draw`; the attributes are arrays over all of them.  If
    a fit was stopped early (``max_time``, a callback, Ctrl-C), chains may have different
    numbers of draws: the arrays are then as long as the longest chain, and what is not
    there is NaN, or -1 in arrays of integers.

    Parameters
    ----------
    chains : sequence of sequence of Draw
        The draws of every chain.
    hyperparameters : callable, optional
        Finds those of the emission in its record, as the emission's method of this name.

    Attributes
    ----------
    n_draws : ndarray of shape (n_chains,), int
        Number of draws of every chain.
    lp : ndarray of shape (n_chains, max(n_draws))
        Log joint probability of states, seating and data given the hyperparameters, nats.
    n_states : ndarray of shape (n_chains, max(n_draws)), int
        Number of states.
    n_tables : ndarray of shape (n_chains, max(n_draws)), int
        Number of tables of the transitions in all.
    alpha, gamma : ndarray of shape (n_chains, max(n_draws))
        Transition concentrations.
    emission_alpha, emission_gamma : ndarray of shape (n_chains, max(n_draws))
        Emission concentrations; only if the emission has them.
    hyperparameters : dict of {str: ndarray of shape (n_chains, max(n_draws), ...)}
        All hyperparameters that are part of a draw, by name: the concentrations above,
        and those of the emission that have no fixed value, such as
        ``"emission_strength"``.  Where every column has its own, columns are the last
        dimension.  Of mixed data
        (:class:`~skihmm.emissions.ProductEmission`) ``"emission_<part>__<name>"``.
    acceptance_rate : ndarray of shape (n_chains, max(n_draws))
        Share of local proposals accepted in the sweeps since the draw before.
    split_merge_acceptance_rate : ndarray of shape (n_chains, max(n_draws))
        The same of split-merge trials; NaN where there were none.
    seconds : ndarray of shape (n_chains, max(n_draws))
        CPU seconds of the sweeps since the draw before.
    sweep : ndarray of shape (n_chains, max(n_draws)), int
        Sweeps that the chain had made, those of the burn-in included.
    states : ndarray of shape (n_chains, max(n_draws), n_samples), int32, or None
        State of every step; None with ``store_states=False``.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> hmm = HCRPHMM(n_burnin=20, n_draws=5, n_chains=2, random_state=0)
    >>> draws = hmm.fit([[0], [1]] * 20).draws_
    >>> draws
    <PosteriorDraws: 2 chains x 5 draws>
    >>> draws.n_states.shape, draws.states.shape
    ((2, 5), (2, 5, 40))
    """

    def __init__(
        self,
        chains: Sequence[Sequence[Draw]],
        hyperparameters: Callable[[EmissionRecord], Hyperparameters] | None = None,
    ) -> None:
        expected = (
            "expected the draws of every chain, a list of lists of Draw. A fitted "
            "HCRPHMM has them as draws_."
        )
        try:
            self._chains = [list(chain) for chain in chains]
        except TypeError:
            raise TypeError(
                f"chains is of type {type(chains).__name__}; {expected}"
            ) from None
        for draw in chained.from_iterable(self._chains):
            if not isinstance(draw, Draw):
                raise TypeError(f"chains holds the draw {draw!r}; {expected}")
        if not any(self._chains):
            raise ValueError(f"chains holds no draw; {expected}")
        self.n_draws = np.array([len(chain) for chain in self._chains])
        self.lp = self._collect("lp", float)
        self.n_states = self._collect("n_states", int)
        self.n_tables = self._collect("n_tables", int)
        self.alpha = self._collect("alpha", float)
        self.gamma = self._collect("gamma", float)
        self.acceptance_rate = self._collect("info.acceptance_rate", float)
        self.split_merge_acceptance_rate = self._collect(
            "info.split_merge_acceptance_rate", float
        )
        self.seconds = self._collect("info.seconds", float)
        self.sweep = self._collect("sweep", int)
        self.hyperparameters = {"alpha": self.alpha, "gamma": self.gamma}
        if hyperparameters is not None:
            self._collect_emission(hyperparameters)
        if "emission_alpha" in self.hyperparameters:
            self.emission_alpha = self.hyperparameters["emission_alpha"]
            self.emission_gamma = self.hyperparameters["emission_gamma"]

    def _collect(self, name: str, dtype: type) -> Array:
        attribute = attrgetter(name)
        absent = np.nan if dtype is float else -1
        values: Array = np.full(self.shape, absent, dtype=dtype)
        for c, chain in enumerate(self._chains):
            values[c, : len(chain)] = [attribute(draw) for draw in chain]
        return values

    def _collect_emission(
        self, hyperparameters: Callable[[EmissionRecord], Hyperparameters]
    ) -> None:
        for c, chain in enumerate(self._chains):
            for d, draw in enumerate(chain):
                for name, value in hyperparameters(draw.emission).items():
                    values = self.hyperparameters.setdefault(
                        f"emission_{name}",
                        np.full((*self.shape, *np.shape(value)), np.nan),
                    )
                    values[c, d] = value

    def positive_hyperparameters(self) -> dict[str, Floats]:
        """One number per draw of every hyperparameter that is positive.

        Returns
        -------
        hyperparameters : dict of {str: ndarray of shape (n_chains, max(n_draws))}
            Where every column of the data has its own, their geometric mean.
        """
        positive = {
            name: values
            for name, values in self.hyperparameters.items()
            if not name.endswith("mean")
        }
        return {
            name: np.exp(np.log(values).mean(axis=2)) if values.ndim == 3 else values
            for name, values in positive.items()
        }

    @property
    def states(self) -> Labels | None:
        """State of every step, shape (n_chains, max(n_draws), n_samples), or None."""
        if not self.has_states:
            return None
        paths = [
            [draw.states for draw in chain if draw.states is not None]
            for chain in self._chains
        ]
        n_samples = len(next(chained.from_iterable(paths)))
        states = np.full((*self.shape, n_samples), -1, dtype=np.int32)
        for chain, values in zip(paths, states, strict=True):
            values[: len(chain)] = np.reshape(chain, (len(chain), n_samples))
        return states

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chains, and of draws of the longest chain."""
        return len(self._chains), int(self.n_draws.max())

    def __len__(self) -> int:
        return len(self._chains)

    def __repr__(self) -> str:
        low, high = self.n_draws.min(), self.n_draws.max()
        n_draws = f"{high}" if low == high else f"{low} to {high}"
        return f"<PosteriorDraws: {len(self)} chains x {n_draws} draws>"

    def __getitem__(self, index: tuple[int, int]) -> Draw:
        try:
            c, d = map(as_index, index)
        except (TypeError, ValueError):
            raise TypeError(
                f"draws[{index!r}]; expected two integers, draws[chain, draw]."
            ) from None
        try:
            return self._chains[c][d].widened()
        except IndexError:
            raise IndexError(
                f"draws[{c}, {d}]; there are {len(self)} chains of "
                f"{', '.join(map(str, self.n_draws))} draws, counted from 0."
            ) from None

    def thinned(self, max_draws: int | None = None) -> list[Draw]:
        """Draws of all chains in one list, evenly spaced if there are too many.

        Parameters
        ----------
        max_draws : int, optional
            Longest list wanted; all draws by default.

        Returns
        -------
        draws : list of Draw
        """
        index = [
            (c, d) for c, chain in enumerate(self._chains) for d in range(len(chain))
        ]
        if max_draws is not None and max_draws < len(index):
            # The last draw is always among them.
            chosen = np.linspace(len(index) - 1, 0, max_draws).round().astype(int)[::-1]
            index = [index[i] for i in chosen]
        return [self[pair] for pair in index]

    @property
    def has_states(self) -> bool:
        """Whether every draw has its path: False after ``store_states=False``."""
        # (warm_start may have gone on with another store_states.)
        return all(d.states is not None for chain in self._chains for d in chain)

    def summed_lp(self) -> Floats:
        """Log joint probability of every draw, summed over seatings.

        ``lp`` is that of one seating.  Here the probabilities of all seatings with as
        many tables are added up: who sits with whom says nothing about the states, but
        makes ``lp`` wander, by hundreds of nats where a concentration is large.

        Returns
        -------
        lp : ndarray of shape (n_chains, max(n_draws))
            Of states, numbers of tables and data given the concentrations (nats).
        """
        return self._collect("summed_lp", float)

    def argmax(self) -> tuple[int, int]:
        """Chain and draw of the highest log joint probability, summed over seatings.

        Returns
        -------
        chain, draw : int
            Of the largest :meth:`summed_lp`; the first one, if there are several.
        """
        values = self.summed_lp()
        chain, draw = np.unravel_index(np.nanargmax(values), values.shape)
        return int(chain), int(draw)

    def to_dict(self) -> dict[str, dict[str, Array]]:
        """Arrays in ArviZ's groups.

        Chains without a draw are left out, and of the others as many draws, the first
        ones, are taken as the shortest has: ArviZ needs arrays without holes.

        Returns
        -------
        groups : dict of dict of ndarray
            ``"posterior"`` and ``"sample_stats"``; chain and draw are the first two
            dimensions of every array.
        """
        chains = np.flatnonzero(self.n_draws)
        n_draws = self.n_draws[chains].min()
        posterior: dict[str, Array] = {
            **self.hyperparameters,
            "n_states": self.n_states,
        }
        if self.states is not None:
            posterior["states"] = self.states
        stats = {
            name: getattr(self, name)
            for name in (
                "lp",
                "acceptance_rate",
                "split_merge_acceptance_rate",
                "n_tables",
                "seconds",
            )
        }
        return {
            group: {name: array[chains, :n_draws] for name, array in arrays.items()}
            for group, arrays in (("posterior", posterior), ("sample_stats", stats))
        }

    def to_arviz(self, *, with_states: bool = False) -> Any:
        """The draws as ArviZ takes them: for its summaries, plots and files.

        As in :meth:`to_dict`, of every chain as many draws are taken as the shortest has.

        Parameters
        ----------
        with_states : bool, default=False
            Put the state paths into the posterior too, with a dimension ``step``.  Labels
            mean nothing beyond one draw, so summaries of them say nothing.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree from ArviZ 1.0 on, InferenceData from earlier versions.  Groups
            ``posterior`` and ``sample_stats`` with dimensions ``chain`` (numbers of the
            chains) and ``draw``.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        ValueError
            If `with_states` is true and the draws have no paths.
        """
        if check_flag("with_states", with_states) and self.states is None:
            raise ValueError(
                "with_states=True, but the draws have no state paths: they were made "
                "with store_states=False. Leave it out, or fit with store_states=True."
            )
        arviz = _import_arviz()
        groups = self.to_dict()
        coords = {"chain": np.flatnonzero(self.n_draws)}
        dims = {}
        if with_states:
            dims["states"] = ["step"]
            coords["step"] = np.arange(groups["posterior"]["states"].shape[2])
        else:
            groups["posterior"].pop("states", None)
        creator = {
            "inference_library": "skihmm",
            "inference_library_version": __version__,
        }
        # (ArviZ 1.0 still answers to the name of its former class, with a warning.)
        if arviz.__name__ == "arviz" and arviz.__version__.startswith("0."):
            return arviz.from_dict(**groups, coords=coords, dims=dims, attrs=creator)
        return arviz.from_dict(
            groups,
            coords=coords,
            dims=dims,
            attrs={"/": creator, **dict.fromkeys(groups, creator)},
        )
