"""Posterior draws as plain arrays with dimensions chain and draw first."""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain as chained
from operator import attrgetter
from operator import index as as_index
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm._data.validation import check_flag, row_chunks
from skihmm._records import (
    CONTEXT_ALPHA,
    STAY_MEAN,
    STAY_PRIOR,
    EmissionRecord,
    Hyperparameters,
    ModelRecord,
    TransitionsRecord,
    hyperparameters_of,
    levels_of,
    map_integers,
    seatings,
)
from skihmm._texts import html_table, percent
from skihmm._typing import Array, Flags, Floats, Integers, Labels
from skihmm._using.log_joint import log_seatings, log_stays
from skihmm._version import __version__
from skihmm.core._sweep_info import RATES, SweepInfo

# Chains whose draws have less than this part of the weight of the best chain's draws are left out
# of estimates, predictions and scores.
LEAST_WEIGHT = 1e-3


def occupancy_order(
    states: Integers, n_states: int, known: Labels | None = None
) -> NDArray[np.intp]:
    """Order states by decreasing occupancy, ties by first appearance.

    The known states, 0, 1, ... or -1 where there is none, come first, in this order.
    """
    first = np.full(n_states, len(states))
    sizes = np.zeros(n_states, dtype=np.intp)
    for rows in row_chunks(len(states)):
        part = states[rows]
        sizes += np.bincount(part, minlength=n_states)
        np.minimum.at(first, part, np.arange(rows.start, rows.stop))
    order = np.lexsort((first, -sizes))
    if known is None:
        return order
    labels, steps = np.unique(known, return_index=True)
    order = np.concatenate([states[steps[labels >= 0]], order])
    return order[np.sort(np.unique(order, return_index=True)[1])]


def spacing(n_steps: int, most: int | None) -> int:
    """Distance of at most so many evenly spaced steps."""
    return 1 if most is None else -(-n_steps // most)


def narrow(values: Integers) -> Integers:
    """Convert non-negative integers to the smallest type of one or two bytes that fits.

    They are unchanged if they have that type already, or neither fits.
    """
    top = int(values.max(initial=0))
    for dtype in (np.uint8, np.uint16):
        if top <= np.iinfo(dtype).max:
            return values.astype(dtype, copy=False)
    return values


def _widen(values: Integers) -> Integers:
    return values.astype(np.int32)


@dataclass(frozen=True, repr=False)
class Draw:
    """One posterior draw.

    Parameters
    ----------
    n_states : int
        Number of occupied states.
    lp : float
        Log joint probability of states, seating and data given the hyperparameters, nats.
    states : ndarray of shape (n_samples,) or None
        State of every training step, numbered by decreasing occupancy.  None with
        ``store_states=False``.
    last_state : int
        State of the last training step.
    transitions : TransitionsRecord
        Cells of the transition seating: ``rows`` (previous state; ``n_states`` is the
        start), ``dishes`` (next state), ``n_customers``, ``n_tables`` and all table
        ``sizes`` in the order of the cells.  The hyperparameters by name.  With
        probabilities to stay, the number of ``stays`` of every state.  With
        contexts, the cells of further ``levels``, the tree of ``contexts``, by which rows
        are numbered, and with probabilities to stay the number of ``draws`` after every
        state and of sequences.
    emission : EmissionRecord
        The emission's statistics.
    sweep : int
        Number of sweeps of the chain before the draw.
    info : SweepInfo
        Sum over the sweeps since the previous draw.

    See Also
    --------
    PosteriorDraws : Draws of all chains.
    draw_parameters : Parameters of one draw as arrays.

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

    def __repr__(self) -> str:
        return f"<Draw: {self.n_states} states, log joint probability {self.summed_lp:.1f}>"

    @property
    def alpha(self) -> float:
        """Lower concentration of the transitions."""
        return hyperparameters_of(self.transitions)["alpha"]

    @property
    def gamma(self) -> float:
        """Top concentration of the transitions."""
        return hyperparameters_of(self.transitions)["gamma"]

    @property
    def n_tables(self) -> int:
        """Total number of tables of the transitions."""
        return sum(int(level["n_tables"].sum()) for level in levels_of(self.transitions))

    @property
    def summed_lp(self) -> float:
        """Log joint probability, summed over seatings with these table counts, nats."""
        levels = levels_of(self.transitions)
        log_all = log_seatings([*levels, *seatings(self.emission)])
        return self.lp + log_all + log_stays(self.transitions)

    @property
    def arrays(self) -> ModelRecord:
        """Return the part of the draw for the compiled core."""
        return {
            "n_states": self.n_states,
            "transitions": self.transitions,
            "emission": self.emission,
        }

    def _with_integers(self, change: Callable[[Integers], Integers]) -> Draw:
        return replace(
            self,
            states=map_integers(self.states, change),
            transitions=map_integers(self.transitions, change),
            emission=map_integers(self.emission, change),
        )

    def compact(self, store_states: bool) -> Draw:
        """Copy the draw with labels and counts in the smallest integer type that fits.

        Parameters
        ----------
        store_states : bool
            Whether to keep the path.

        Returns
        -------
        draw : Draw
        """
        draw = self if store_states else replace(self, states=None)
        return draw._with_integers(narrow)

    def widened(self) -> Draw:
        """Copy the draw with all integers of 32 bits.

        Returns
        -------
        draw : Draw
        """
        return self._with_integers(_widen)


def check_number(value: object, low: float) -> None:
    """Raise ValueError if a value from a file is no number, or a lower one."""
    # Integers may be too large for a float.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= sys.float_info.max
    ):
        raise ValueError(f"{value!r} where a number >= {low} is expected")


def check_path(path: Integers | None, n_steps: int) -> None:
    """Raise ValueError if a path from a file has not one label per step."""
    if path is None or path.shape != (n_steps,) or path.dtype.kind not in "iu":
        raise ValueError("a path does not have one label per step")


def check_draw(draw: Draw, n_steps: int) -> None:
    """Raise ValueError if a draw from a file is impossible for so many steps."""
    check_number(draw.lp, -sys.float_info.max)
    if not 0 <= draw.last_state < draw.n_states:
        raise ValueError("the last state of a draw is none of its states")
    if draw.states is not None:
        check_path(draw.states, n_steps)
        if draw.states.min() < 0 or draw.states.max() >= draw.n_states:
            raise ValueError("a path has labels that are none of the draw's states")


def _import_arviz() -> ModuleType:
    """Import ArviZ, or its part for the format."""
    for name in ("arviz", "arviz_base"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError(
        "to_arviz needs ArviZ, which is not installed: pip install arviz. (to_dict has "
        "the same arrays.)"
    )


def _counted(numbers: Integers, word: str) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    text = f"{low} to {high}" if low < high else f"{high}"
    return f"{text} {word}{'s' * (high != 1)}"


class PosteriorDraws:
    """Draws of all chains.

    ``draws[c, d]`` is a :class:`Draw`.  The attributes are arrays over all draws.  After
    an early stop (``max_time``, a callback, Ctrl-C), chains may have different numbers of
    draws.  Arrays are as long as the longest chain, filled with NaN, or -1 in arrays of
    integers.

    Parameters
    ----------
    chains : sequence of sequence of Draw
        The draws of every chain.
    hyperparameters : callable, optional
        Method of the emission that returns these hyperparameters from the record.
    log_weights : ndarray of shape (n_chains,), optional
        Logarithm of the weight of a draw of every chain, 0 for the largest one.  By
        default all draws have the same.

    Attributes
    ----------
    n_draws : ndarray of shape (n_chains,), int
        Number of draws of every chain.
    chain_weights : ndarray of shape (n_chains,)
        Weight of every chain in summaries, scores and predictions, with sum one.  Chains
        that agree have weights proportional to their numbers of draws.  Chains do not
        visit modes in proportion to the probabilities of the modes.  The weight is
        ``exp`` of the mean rank of ten draws of a chain (`log_rank`), on two
        conditions: all ten values are below all ten values of the best chain, and the mean
        is lower by more than 3 nats.  With known states, or without paths, all draws have
        the same weight.
    log_rank : float
        Rank of the selected draw among chains of one model, nats: log p(path, data) less
        log p(path | data) under the parameters of the draw.  It is no log p(data), and falls
        by 2 to 12 nats with every further state.  Do not compare the rank between models or
        numbers of states.  NaN with known states or without paths.
    lp : ndarray of shape (n_chains, max(n_draws))
        Log joint probability of states, seating and data given the hyperparameters, nats.
    n_states : ndarray of shape (n_chains, max(n_draws)), int
        Number of states.
    n_tables : ndarray of shape (n_chains, max(n_draws)), int
        Total number of tables of the transitions.
    alpha, gamma : ndarray of shape (n_chains, max(n_draws))
        Transition concentrations.
    stay_prior : ndarray of shape (n_chains, max(n_draws), 2), or None
        Parameters of the Beta prior of the states' probabilities to stay, pseudo-counts
        of staying and of leaving.  None if states have no probabilities to stay.
    context_alpha : ndarray of shape (n_chains, max(n_draws), n_columns), or None
        Concentrations of the columns of contexts.  None without contexts.
    emission_alpha, emission_gamma : ndarray of shape (n_chains, max(n_draws))
        Emission concentrations, if the emission has concentrations.
    emission_context_alpha : ndarray of shape (n_chains, max(n_draws), n_columns), or None
        Concentrations of the columns of contexts of the emission.  None without contexts.
    hyperparameters : dict of {str: ndarray of shape (n_chains, max(n_draws), ...)}
        All hyperparameters that are part of a draw, by name: the concentrations above,
        and free hyperparameters of the emission such as ``"emission_strength"``, with
        columns as the last dimension of a hyperparameter per column.  Parts of
        :class:`~skihmm.emissions.ProductEmission` have ``"emission_<part>__<name>"``.
    acceptance_rate : ndarray of shape (n_chains, max(n_draws))
        Acceptance rate of local proposals in the sweeps since the previous draw.
    split_merge_acceptance_rate : ndarray of shape (n_chains, max(n_draws))
        Share of accepted split-merge trials.  NaN without trials.
    run_split_merge_acceptance_rate : ndarray of shape (n_chains, max(n_draws))
        The same of split-merge trials of whole runs.
    seconds : ndarray of shape (n_chains, max(n_draws))
        CPU seconds of the sweeps since the previous draw.
    sweep : ndarray of shape (n_chains, max(n_draws)), int
        Number of sweeps of the chain before the draw, with the burn-in.
    states : ndarray of shape (n_chains, max(n_draws), n_samples), int32, or None
        State of every step.  None with ``store_states=False``.

    See Also
    --------
    Draw : One draw.
    n_states_distribution : Posterior distribution of the number of states.
    skihmm.inspection.TraceDisplay : Draw the traces of chains.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> hmm = HCRPHMM(n_burnin=20, n_draws=5, n_chains=2, random_state=0)
    >>> draws = hmm.fit([[0], [1]] * 20).draws_
    >>> draws
    <PosteriorDraws: 2 chains x 5 draws, 2 to 4 states, log rank -6.8>
    >>> draws.n_states.shape, draws.states.shape
    ((2, 5), (2, 5, 40))
    """

    log_rank: float = math.nan

    def __init__(
        self,
        chains: Sequence[Sequence[Draw]],
        hyperparameters: Callable[[EmissionRecord], Hyperparameters] | None = None,
        log_weights: Floats | None = None,
    ) -> None:
        expected = (
            "expected the draws of every chain, a list of lists of Draw. A fitted "
            "HCRPHMM has them as draws_."
        )
        try:
            self._chains = [list(chain) for chain in chains]
        except TypeError:
            raise TypeError(f"chains is of type {type(chains).__name__}; {expected}") from None
        for draw in chained.from_iterable(self._chains):
            if not isinstance(draw, Draw):
                raise TypeError(f"chains holds the draw {draw!r}; {expected}")
        if not any(self._chains):
            raise ValueError(f"chains holds no draw; {expected}")
        self.n_draws = np.array([len(chain) for chain in self._chains])
        if log_weights is None:
            log_weights = np.zeros(len(self))
        with np.errstate(under="ignore"):
            self._weights = np.exp(log_weights)
        totals = self._weights * self.n_draws
        self.chain_weights = totals / totals.sum()
        self._weights[self._weights < LEAST_WEIGHT] = 0.0
        self.lp = self._collect("lp", float)
        self.n_states = self._collect("n_states", int)
        self.n_tables = self._collect("n_tables", int)
        (
            self.acceptance_rate,
            self.split_merge_acceptance_rate,
            self.run_split_merge_acceptance_rate,
        ) = (self._collect(f"info.{name}", float) for name in RATES)
        self.seconds = self._collect("info.seconds", float)
        self.sweep = self._collect("sweep", int)
        self.hyperparameters: dict[str, Array] = {}
        self._collect_hyperparameters("", lambda draw: hyperparameters_of(draw.transitions))
        self.alpha = self.hyperparameters["alpha"]
        self.gamma = self.hyperparameters["gamma"]
        self.stay_prior = self.hyperparameters.get(STAY_PRIOR)
        self.context_alpha = self.hyperparameters.get(CONTEXT_ALPHA)
        if hyperparameters is not None:
            self._collect_hyperparameters("emission_", lambda draw: hyperparameters(draw.emission))
        if "emission_alpha" in self.hyperparameters:
            self.emission_alpha = self.hyperparameters["emission_alpha"]
            self.emission_gamma = self.hyperparameters["emission_gamma"]
        self.emission_context_alpha = self.hyperparameters.get("emission_" + CONTEXT_ALPHA)

    def _collect(self, name: str, dtype: type) -> Array:
        attribute = attrgetter(name)
        absent = np.nan if dtype is float else -1
        values: Array = np.full(self.shape, absent, dtype=dtype)
        for c, chain in enumerate(self._chains):
            values[c, : len(chain)] = [attribute(draw) for draw in chain]
        return values

    def _collect_hyperparameters(
        self, prefix: str, hyperparameters: Callable[[Draw], Hyperparameters]
    ) -> None:
        for c, chain in enumerate(self._chains):
            for d, draw in enumerate(chain):
                for name, value in hyperparameters(draw).items():
                    values = self.hyperparameters.setdefault(
                        prefix + name,
                        np.full((*self.shape, *np.shape(value)), np.nan),
                    )
                    values[c, d] = value

    def positive_hyperparameters(self) -> dict[str, Floats]:
        """One value per draw of every positive hyperparameter.

        Returns
        -------
        hyperparameters : dict of {str: ndarray of shape (n_chains, max(n_draws))}
            The geometric mean of a hyperparameter with one value per column.  In the
            place of `stay_prior`, or of `stay_mean`: "expected_dwell", for how many steps
            a new state is expected to last by it, and "omega", its pseudo-count of
            leaving.
        """
        positive = {}
        for name, values in self.hyperparameters.items():
            if name == STAY_PRIOR:
                kappa, omega = np.moveaxis(values, 2, 0)
                positive["expected_dwell"] = 1 + kappa / omega
                positive["omega"] = omega
            elif name == STAY_MEAN:
                positive["expected_dwell"] = 1 + np.exp(values)
            elif not name.endswith("mean"):
                every = tuple(range(2, values.ndim))
                positive[name] = np.exp(np.log(values).mean(axis=every)) if every else values
        return positive

    @property
    def states(self) -> Labels | None:
        """State of every step, shape (n_chains, max(n_draws), n_samples), or None."""
        if not self.has_states:
            return None
        paths = [
            [draw.states for draw in chain if draw.states is not None] for chain in self._chains
        ]
        n_samples = len(next(chained.from_iterable(paths)))
        states = np.full((*self.shape, n_samples), -1, dtype=np.int32)
        for chain, values in zip(paths, states, strict=True):
            values[: len(chain)] = np.reshape(chain, (len(chain), n_samples))
        return states

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chains and of draws of the longest chain."""
        return len(self._chains), int(self.n_draws.max())

    def __len__(self) -> int:
        return len(self._chains)

    def __repr__(self) -> str:
        chains = _counted(np.array([len(self)]), "chain")
        draws = _counted(self.n_draws, "draw")
        states = _counted(self.n_states[self.n_states >= 0], "state")
        rank = ""
        if not math.isnan(self.log_rank):
            rank = f", log rank {self.log_rank:.1f}"
        return f"<PosteriorDraws: {chains} x {draws}, {states}{rank}>"

    def _repr_html_(self) -> str:
        rows = [["chain", "draws", "states", "log joint probability", "weight"]]
        for c, n in enumerate(self.n_draws):
            lps, n_states = self.lp[c, :n], self.n_states[c, :n]
            ends = dict.fromkeys([n_states.min(), n_states.max()]) if n else {}
            mean = f"{lps.mean():.1f}" if n else ""
            shown = " to ".join(map(str, ends))
            rows.append([str(c), str(n), shown, mean, percent(self.chain_weights[c])])
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{html_table(rows)}"

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

    def with_draw(self, index: tuple[int, int], draw: Draw) -> PosteriorDraws:
        """Copy with another draw in a place.

        Parameters
        ----------
        index : (int, int)
            Chain and draw.
        draw : Draw
            With the numbers of the draw in this place, of which all arrays over draws are.

        Returns
        -------
        draws : PosteriorDraws
        """
        changed = copy(self)
        changed._chains = [list(chain) for chain in self._chains]
        changed._chains[index[0]][index[1]] = draw.compact(draw.states is not None)
        return changed

    def thinned(self, max_draws: int | None = None) -> list[Draw]:
        """List the draws of all chains, evenly spaced if there are too many.

        Parameters
        ----------
        max_draws : int, optional
            Largest length of the list.  By default all draws.

        Returns
        -------
        draws : list of Draw
        """
        return [self[i] for i in self._places(max_draws, self.n_draws > 0)]

    def _places(self, max_draws: int | None, chains: Flags) -> list[tuple[int, int]]:
        """Chain and number of evenly spaced draws of some chains."""
        index = [(c, d) for c in np.flatnonzero(chains).tolist() for d in range(self.n_draws[c])]
        if max_draws is not None and max_draws < len(index):
            # The last draw is always among them.
            chosen = np.linspace(len(index) - 1, 0, max_draws).round().astype(int)[::-1]
            index = [index[i] for i in chosen]
        return index

    @property
    def has_weight(self) -> Flags:
        """Mask of the chains of which estimates, predictions and scores are."""
        return np.asarray(self._weights > 0)

    def weights(self) -> Floats:
        """Weight of every draw, chain after chain: 1 for draws of the best chain.

        Returns
        -------
        weights : ndarray of shape (n_draws.sum(),)
            0 below 1e-3.
        """
        return np.repeat(self._weights, self.n_draws)

    def weighted(
        self, max_draws: int | None = None, *, with_states: bool = False
    ) -> tuple[list[Draw], Floats]:
        """List draws for predictions and their weights.

        Chains of no weight are left out.

        Parameters
        ----------
        max_draws : int, optional
            Largest length of the list, of evenly spaced draws.  By default all draws.
        with_states : bool, default=False
            Whether to keep the paths, nearly all of the memory of long data.

        Returns
        -------
        draws : list of Draw
        weights : ndarray of shape (len(draws),)
            Those of :meth:`weights`.
        """
        places = self._places(max_draws, self.has_weight)
        draws = [self._chains[c][d] for c, d in places]
        if not with_states:
            draws = [replace(draw, states=None) for draw in draws]
        weights = self._weights[[c for c, _ in places]]
        return [draw.widened() for draw in draws], weights

    def _paths(self, most: int | None = None) -> Labels:
        """Paths of all draws, chain after chain, with `most` at evenly spaced steps."""
        chosen = [d.states for chain in self._chains for d in chain if d.states is not None]
        every = spacing(len(chosen[0]), most)
        return np.stack([states[::every] for states in chosen]).astype(np.int32)

    @property
    def has_states(self) -> bool:
        """Whether every draw has its path: False after ``store_states=False``."""
        # warm_start may have changed store_states.
        return all(d.states is not None for chain in self._chains for d in chain)

    def summed_lp(self) -> Floats:
        """Log joint probability of every draw, summed over seatings.

        ``lp`` is the log joint probability of one seating.  The method adds the
        probabilities of all seatings with the same table counts.  The assignment of
        customers to tables carries no information about the states, but ``lp`` varies
        with it by hundreds of nats where a concentration is large.

        Returns
        -------
        lp : ndarray of shape (n_chains, max(n_draws))
            Log probability of states, table counts and data given the concentrations, nats.
        """
        return self._collect("summed_lp", float)

    def argmax(self) -> tuple[int, int]:
        """Find the draw with the highest log joint probability, summed over seatings.

        Returns
        -------
        chain, draw : int
            Indices of the largest :meth:`summed_lp`, the first of equal values.
        """
        values = self.summed_lp()
        chain, draw = np.unravel_index(np.nanargmax(values), values.shape)
        return int(chain), int(draw)

    def to_dict(self) -> dict[str, dict[str, Array]]:
        """Return the arrays in ArviZ's groups.

        Chains without a draw are left out, and all chains are cut to the shortest chain,
        because ArviZ needs complete arrays.

        Returns
        -------
        groups : dict of dict of ndarray
            ``"posterior"`` and ``"sample_stats"``.  Chain and draw are the first two
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
        stats = {name: getattr(self, name) for name in ("lp", *RATES, "n_tables", "seconds")}
        return {
            group: {name: array[chains, :n_draws] for name, array in arrays.items()}
            for group, arrays in (("posterior", posterior), ("sample_stats", stats))
        }

    def to_arviz(self, *, with_states: bool = False) -> Any:
        """Convert the draws to ArviZ's data structure.

        See :meth:`to_dict`, chains are cut to the shortest one.

        Parameters
        ----------
        with_states : bool, default=False
            Whether to add the state paths to the posterior, with a dimension ``step``.
            Labels are not comparable between draws, so their summaries are meaningless.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree from ArviZ 1.0 on, InferenceData from earlier versions, with groups
            ``posterior`` and ``sample_stats`` and dimensions ``chain`` (numbers of the
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
        # ArviZ 1.0 still has the name of its former class, with a warning.
        if arviz.__name__ == "arviz" and arviz.__version__.startswith("0."):
            return arviz.from_dict(**groups, coords=coords, dims=dims, attrs=creator)
        return arviz.from_dict(
            groups,
            coords=coords,
            dims=dims,
            attrs={"/": creator, **dict.fromkeys(groups, creator)},
        )
