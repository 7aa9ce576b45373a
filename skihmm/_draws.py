"""Posterior draws: plain arrays, chain and draw first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain as chained
from operator import index as as_index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm._log_joint import summed_lp
from skihmm._validation import check_flag
from skihmm._version import __version__


def _sorted_record(record: dict[str, Any], rows: Any, dishes: Any) -> dict[str, Any]:
    """A seating record under new row and dish numbers, sorted by (row, dish)."""
    order = np.lexsort((dishes, rows))
    n_tables = record["n_tables"]
    ends = np.cumsum(n_tables)
    sizes = [
        record["sizes"][end - n : end]
        for end, n in zip(ends[order], n_tables[order], strict=True)
    ]
    return {
        "rows": rows[order].astype(np.int32),
        "dishes": dishes[order].astype(np.int32),
        "n_customers": record["n_customers"][order],
        "n_tables": n_tables[order],
        "sizes": np.concatenate(sizes) if sizes else record["sizes"],
    }


def _relabelled(emission: dict[str, Any], label: Any, order: Any) -> dict[str, Any]:
    """Statistics of emissions under new state numbers: state order[k] becomes state k."""
    changed: dict[str, Any] = {}
    if "columns" in emission:
        changed["columns"] = [
            _sorted_record(column, label[column["rows"]], column["dishes"])
            for column in emission["columns"]
        ]
    if "numbers" in emission:
        changed["numbers"] = emission["numbers"][order]
    if "parts" in emission:
        changed["parts"] = [_relabelled(part, label, order) for part in emission["parts"]]
    return {**emission, **changed}


def occupancy_order(states: NDArray[Any], n_states: int) -> NDArray[np.intp]:
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


def order_by_occupancy(
    arrays: dict[str, Any], known: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Renumber the states of a chain's arrays by decreasing occupancy.

    As :func:`occupancy_order` says, so equal partitions get equal labels.

    Parameters
    ----------
    arrays : dict
        ``ChainState.to_arrays()``.
    known : ndarray of shape (n_samples,), optional
        Labels 0, 1, ... of steps whose state is known, -1 for others: these states come
        first, in this order.

    Returns
    -------
    arrays : dict
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
            **_sorted_record(
                transitions, label[transitions["rows"]], label[transitions["dishes"]]
            ),
        },
        "emission": _relabelled(arrays["emission"], label, order),
    }


def narrow(values: NDArray[Any]) -> NDArray[Any]:
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
    fits = [dtype for dtype in (np.uint8, np.uint16) if top <= np.iinfo(dtype).max]
    return values.astype(fits[0]) if fits else values


def _widen(values: NDArray[Any]) -> NDArray[np.int32]:
    return values.astype(np.int32)


def _map_integers(value: Any, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Any:
    """A nested record with all its arrays of integers changed."""
    if isinstance(value, dict):
        return {key: _map_integers(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_map_integers(inner, change) for inner in value]
    is_integers = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
    return change(value) if is_integers else value


def compact(draw: dict[str, Any], store_states: bool) -> dict[str, Any]:
    """A draw in as few bytes as its labels and counts, all non-negative, need.

    Parameters
    ----------
    draw : dict
        Of ``Chain.draw()``.
    store_states : bool
        Keep the path.

    Returns
    -------
    draw : dict
    """
    return _map_integers(draw if store_states else {**draw, "states": None}, narrow)


@dataclass(frozen=True)
class Draw:
    """One posterior draw: a model whose seating is known.

    Parameters
    ----------
    n_states : int
        Number of states that some step is in.
    lp : float
        Log joint probability of states, seating and data given the hyperparameters, nats.
    alpha, gamma : float
        Transition concentrations.
    states : ndarray of shape (n_samples,) or None
        State of every training step, numbered by decreasing occupancy; None with
        ``store_states=False``.
    last_state : int
        State of the last training step.
    transitions : dict of ndarray
        Cells of the transition seating: ``rows`` (previous state; ``n_states`` is the
        start), ``dishes`` (next state), ``n_customers``, ``n_tables`` and all table
        ``sizes`` in the order of the cells.
    emission : dict
        The emission's statistics.

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
    alpha: float
    gamma: float
    states: NDArray[np.int32] | None
    last_state: int
    transitions: dict[str, Any]
    emission: dict[str, Any]

    @property
    def arrays(self) -> dict[str, Any]:
        """The draw as the compiled core takes it."""
        return {
            "n_states": self.n_states,
            "transitions": self.transitions,
            "emission": self.emission,
        }

    def for_particles(self, stats: Any) -> tuple[list[Any], dict[str, Any]]:
        """The draw as particle filters take it.

        Parameters
        ----------
        stats : EmissionStats
            Of the same emission, over any data.

        Returns
        -------
        columns : list
            The emission of every column, with this draw's hyperparameters.
        seating : dict
        """
        columns = stats.columns(self.emission)
        records = {"columns": stats.records(self.emission)}
        return columns, {**self.arrays, "emission": records}


def _import_arviz() -> Any:
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
    chains : sequence of sequence of dict
        The draws of every chain, as a fit makes them.
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
        chains: Sequence[Sequence[dict[str, Any]]],
        hyperparameters: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        expected = (
            "expected the draws of every chain, a list of lists of dict. A fitted "
            "HCRPHMM has them as draws_."
        )
        try:
            self._chains = [list(chain) for chain in chains]
        except TypeError:
            raise TypeError(
                f"chains is of type {type(chains).__name__}; {expected}"
            ) from None
        for draw in chained.from_iterable(self._chains):
            if not (isinstance(draw, dict) and "lp" in draw):
                raise TypeError(f"chains holds the draw {draw!r}; {expected}")
        if not any(self._chains):
            raise ValueError(f"chains holds no draw; {expected}")
        self.n_draws = np.array([len(chain) for chain in self._chains])
        self.lp = self._collect("lp", float)
        self.n_states = self._collect("n_states", int)
        self.n_tables = self._collect("n_tables", int)
        self.alpha = self._collect("alpha", float)
        self.gamma = self._collect("gamma", float)
        self.acceptance_rate = self._collect("acceptance_rate", float)
        self.split_merge_acceptance_rate = self._collect(
            "split_merge_acceptance_rate", float
        )
        self.seconds = self._collect("seconds", float)
        self.sweep = self._collect("sweep", int)
        self.hyperparameters = {"alpha": self.alpha, "gamma": self.gamma}
        if hyperparameters is not None:
            self._collect_emission(hyperparameters)
        if "emission_alpha" in self.hyperparameters:
            self.emission_alpha = self.hyperparameters["emission_alpha"]
            self.emission_gamma = self.hyperparameters["emission_gamma"]

    def _collect(self, name: str, dtype: type) -> NDArray[Any]:
        absent = np.nan if dtype is float else -1
        values: NDArray[Any] = np.full(self.shape, absent, dtype=dtype)
        for c, chain in enumerate(self._chains):
            values[c, : len(chain)] = [draw[name] for draw in chain]
        return values

    def _collect_emission(
        self, hyperparameters: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        for c, chain in enumerate(self._chains):
            for d, draw in enumerate(chain):
                for name, value in hyperparameters(draw["emission"]).items():
                    values = self.hyperparameters.setdefault(
                        f"emission_{name}",
                        np.full((*self.shape, *np.shape(value)), np.nan),
                    )
                    values[c, d] = value

    def positive_hyperparameters(self) -> dict[str, NDArray[np.float64]]:
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
    def states(self) -> NDArray[np.int32] | None:
        """State of every step, shape (n_chains, max(n_draws), n_samples), or None."""
        if not self.has_states:
            return None
        n_samples = len(next(d["states"] for chain in self._chains for d in chain))
        states = np.full((*self.shape, n_samples), -1, dtype=np.int32)
        for c, chain in enumerate(self._chains):
            for d, draw in enumerate(chain):
                states[c, d] = draw["states"]
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
            found = _map_integers(self._chains[c][d], _widen)
        except IndexError:
            raise IndexError(
                f"draws[{c}, {d}]; there are {len(self)} chains of "
                f"{', '.join(map(str, self.n_draws))} draws, counted from 0."
            ) from None
        return Draw(
            n_states=found["n_states"],
            lp=found["lp"],
            alpha=found["alpha"],
            gamma=found["gamma"],
            states=found["states"],
            last_state=found["last_state"],
            transitions=found["transitions"],
            emission=found["emission"],
        )

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
        return all(d["states"] is not None for chain in self._chains for d in chain)

    def summed_lp(self) -> NDArray[np.float64]:
        """Log joint probability of every draw, summed over seatings.

        ``lp`` is that of one seating.  Here the probabilities of all seatings with as
        many tables are added up: who sits with whom says nothing about the states, but
        makes ``lp`` wander, by hundreds of nats where a concentration is large.

        Returns
        -------
        lp : ndarray of shape (n_chains, max(n_draws))
            Of states, numbers of tables and data given the concentrations (nats).
        """
        values = np.full(self.shape, np.nan)
        for c, chain in enumerate(self._chains):
            values[c, : len(chain)] = [summed_lp(draw) for draw in chain]
        return values

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

    def to_dict(self) -> dict[str, dict[str, NDArray[Any]]]:
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
        posterior: dict[str, NDArray[Any]] = {
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
