"""Posterior draws: plain arrays, chain and draw first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def order_by_occupancy(arrays: dict[str, Any]) -> dict[str, Any]:
    """Renumber the states of a chain's arrays by decreasing occupancy.

    Ties go to the state that occurs first, so equal partitions get equal labels.

    Parameters
    ----------
    arrays : dict
        ``ChainState.to_arrays()``.

    Returns
    -------
    arrays : dict
    """
    n_states = arrays["n_states"]
    states = arrays["states"]
    occupancy = np.bincount(states, minlength=n_states)
    first = np.full(n_states, len(states))
    np.minimum.at(first, states, np.arange(len(states)))
    order = np.lexsort((first, -occupancy))
    label = np.empty(n_states + 1, dtype=np.int32)
    label[order] = np.arange(n_states)
    label[n_states] = n_states  # the row of the start restaurant
    transitions = arrays["transitions"]
    emission = arrays["emission"]
    return {
        "n_states": n_states,
        "states": label[states],
        "transitions": {
            **transitions,
            **_sorted_record(
                transitions, label[transitions["rows"]], label[transitions["dishes"]]
            ),
        },
        "emission": {
            **emission,
            "columns": [
                _sorted_record(column, label[column["rows"]], column["dishes"])
                for column in emission["columns"]
            ],
        },
    }


@dataclass(frozen=True)
class Draw:
    """One posterior draw: a model whose seating is known.

    Attributes
    ----------
    n_states : int
        Number of states that some step is in.
    lp : float
        Log joint probability of states, seating and data given the concentrations, nats.
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

    def columns(self, stats: Any) -> list[tuple[int, bool, float, float]]:
        """Columns of the emission with this draw's concentrations.

        Parameters
        ----------
        stats : CategoricalStats
            Statistics of the same emission.

        Returns
        -------
        columns : list of (n_symbols, hierarchical, alpha, gamma)
            What particle filters take.
        """
        alpha, gamma = self.emission["alpha"], self.emission["gamma"]
        return [(n, kind, alpha, gamma) for n, kind, _, _ in stats.columns()]


class PosteriorDraws:
    """Draws of all chains.

    ``draws[c, d]`` is one :class:`Draw`; the attributes are arrays over all of them.

    Attributes
    ----------
    lp : ndarray of shape (n_chains, n_draws)
        Log joint probability of states, seating and data given the concentrations, nats.
    n_states : ndarray of shape (n_chains, n_draws), int
        Number of states.
    n_tables : ndarray of shape (n_chains, n_draws), int
        Number of tables of the transitions in all.
    alpha, gamma : ndarray of shape (n_chains, n_draws)
        Transition concentrations.
    emission_alpha, emission_gamma : ndarray of shape (n_chains, n_draws)
        Emission concentrations; only if the emission has them.
    acceptance_rate : ndarray of shape (n_chains, n_draws)
        Share of local proposals accepted in the sweeps since the draw before.
    split_merge_acceptance_rate : ndarray of shape (n_chains, n_draws)
        The same of split-merge trials; NaN where there were none.
    seconds : ndarray of shape (n_chains, n_draws)
        CPU seconds of the sweeps since the draw before.
    states : ndarray of shape (n_chains, n_draws, n_samples), int32, or None
        State of every step; None with ``store_states=False``.
    """

    def __init__(self, chains: Sequence[Sequence[dict[str, Any]]]) -> None:
        self._chains = [list(chain) for chain in chains]
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
        for name in ("emission_alpha", "emission_gamma"):
            if name in self._chains[0][0]:
                setattr(self, name, self._collect(name, float))

    def _collect(self, name: str, dtype: type) -> NDArray[Any]:
        return np.array(
            [[draw[name] for draw in chain] for chain in self._chains], dtype=dtype
        )

    @property
    def states(self) -> NDArray[np.int32] | None:
        """State of every step, shape (n_chains, n_draws, n_samples), or None."""
        # warm_start may have gone on with another store_states.
        if any(draw["states"] is None for chain in self._chains for draw in chain):
            return None
        return np.array([[draw["states"] for draw in chain] for chain in self._chains])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of chains and of draws per chain."""
        return len(self._chains), len(self._chains[0])

    def __len__(self) -> int:
        return len(self._chains)

    def __repr__(self) -> str:
        n_chains, n_draws = self.shape
        return f"<PosteriorDraws: {n_chains} chains x {n_draws} draws>"

    def __getitem__(self, index: tuple[int, int]) -> Draw:
        try:
            chain, draw = index
        except TypeError:
            raise TypeError(
                f"draws[{index!r}]; expected two indices, draws[chain, draw]."
            ) from None
        found = self._chains[chain][draw]
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
        n_chains, n_draws = self.shape
        index = [(c, d) for c in range(n_chains) for d in range(n_draws)]
        if max_draws is not None and max_draws < len(index):
            # The last draw is always among them.
            chosen = np.linspace(len(index) - 1, 0, max_draws).round().astype(int)[::-1]
            index = [index[i] for i in chosen]
        return [self[pair] for pair in index]

    def argmax(self) -> tuple[int, int]:
        """Chain and draw of the highest log joint probability."""
        chain, draw = np.unravel_index(np.argmax(self.lp), self.lp.shape)
        return int(chain), int(draw)

    def to_dict(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Arrays in ArviZ's groups.

        Returns
        -------
        groups : dict of dict of ndarray
            ``"posterior"`` and ``"sample_stats"``; chain and draw are the first two
            dimensions of every array.
        """
        posterior = {
            name: getattr(self, name)
            for name in (
                "alpha",
                "gamma",
                "emission_alpha",
                "emission_gamma",
                "n_states",
            )
            if hasattr(self, name)
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
        return {"posterior": posterior, "sample_stats": stats}
