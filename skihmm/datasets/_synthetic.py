"""Synthetic sequences: two benchmarks of the literature and draws from the prior.

This module does not use the compiled core.  `make_hcrp_hmm` is written from the
definitions of the model only, so that tests can start the samplers from an exact draw of
the prior and detect differences between the core and the definitions.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state

from skihmm._data.validation import check_choice, check_flag, check_integer, check_positive

__all__ = ["make_automaton_sequence", "make_hcrp_hmm", "make_repeating_sequence"]

# A B C D B C D E as codes; the position in the cycle is the hidden state.
_REPEATING_CYCLE = np.array([0, 1, 2, 3, 1, 2, 3, 4], dtype=np.int64)

# The strong transitions of the automaton visit its 15 states in a cycle; this is the
# letter group of each state along it: ABCDE ABCED ABEDC, every group three times.
_AUTOMATON_GROUPS = np.array([0, 1, 2, 3, 4, 0, 1, 2, 4, 3, 0, 1, 4, 3, 2])
_AUTOMATON_LETTERS_PER_GROUP = 3
# Junctions of the cycle, by the probability of staying on it.  The two weak transitions
# of a junction lead to the successors of the next two junctions of its class.  Inside a
# class every successor thus receives total probability one, so the matrix is doubly
# stochastic and all states are equally frequent.
_AUTOMATON_JUNCTIONS = {0.84: (2, 7, 10, 14), 0.80: (4, 6, 8, 13)}

# The restaurant of a first time step.  It is not a state, hence not a valid label.
_START = -1

# Longest mean dwell time, far below where draws would overflow.
_LONGEST = 1e9


def _check_dwell(dwell: ArrayLike | None, min_dwell: object) -> tuple[NDArray[Any], int]:
    """Return mean dwell times, an empty array for None, and the number of stages."""
    n_stages = check_integer("min_dwell", min_dwell, 1)
    if dwell is None:
        if n_stages > 1:
            raise ValueError(
                f"min_dwell={n_stages}, but dwell=None: every step is a transition. Set "
                "dwell to the mean number of steps of a run."
            )
        return np.empty(0), n_stages
    means = np.asarray(dwell)
    if means.dtype.kind not in "iuf" or means.ndim > 1 or means.size == 0:
        raise TypeError(f"dwell={dwell!r}; expected a number of steps, a list of them, or None.")
    means = np.atleast_1d(means).astype(float)
    if not ((means >= n_stages) & (means <= _LONGEST)).all():
        raise ValueError(
            f"dwell={dwell!r}; expected numbers of steps from min_dwell={n_stages} to "
            f"{_LONGEST:g}. Pass dwell and min_dwell in range."
        )
    return means, n_stages


def _draw_lengths(
    states: NDArray[np.int64],
    means: NDArray[Any],
    n_stages: int,
    rng: np.random.RandomState,
) -> NDArray[np.int64]:
    """Draw the lengths of runs of these states: sums of geometric variables."""
    ends = n_stages / means[states % means.size]
    lengths = rng.geometric(ends[:, np.newaxis], size=(states.size, n_stages))
    return lengths.sum(axis=1).astype(np.int64)


def make_repeating_sequence(
    n_samples: int = 500, *, start: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make the deterministic sequence A B C D B C D E A B C D ...

    This is Sequence 1 of [1]_. It has five symbols and eight states: the run B C D occurs
    twice per cycle, and only the symbol before it determines whether A or E follows. A
    model with one state per symbol has 2.25 bits of information about the hidden states,
    the true one has 3 bits.

    Parameters
    ----------
    n_samples : int, default=500
        Number of time steps, at least 1.
    start : int, default=0
        Hidden state of the first time step, 0 to 7. The sequence is deterministic and
        has no `random_state`.

    Returns
    -------
    X : ndarray of shape (n_samples, 1), dtype int64
        The symbols as codes: A = 0, B = 1, C = 2, D = 3, E = 4.
    states : ndarray of shape (n_samples,), dtype int64
        The hidden states, 0 to 7: positions in the cycle.

    Raises
    ------
    TypeError
        If `n_samples` or `start` is not an integer.
    ValueError
        If `n_samples` is below 1 or `start` is not in 0 to 7.

    See Also
    --------
    make_automaton_sequence : A noisy sequence of the same kind.

    References
    ----------
    .. [1] T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw:
       Accurate Sampling for Hierarchical Chinese Restaurant Process Hidden Markov
       Models", arXiv:1106.0474, 2011.

    Examples
    --------
    >>> from skihmm.datasets import make_repeating_sequence
    >>> X, states = make_repeating_sequence(10)
    >>> "".join("ABCDE"[code] for code in X[:, 0])
    'ABCDBCDEAB'
    >>> states
    array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1])
    """
    n_samples = check_integer("n_samples", n_samples, 1)
    start = check_integer("start", start, 0)
    if start >= _REPEATING_CYCLE.size:
        raise ValueError(f"start={start}; expected an integer from 0 to 7.")
    states = np.arange(start, start + n_samples, dtype=np.int64) % _REPEATING_CYCLE.size
    return _REPEATING_CYCLE[states][:, np.newaxis], states


def _automaton_model() -> Bunch:
    """Return the parameters of the automaton of `make_automaton_sequence`."""
    n_states = _AUTOMATON_GROUPS.size
    successor = (np.arange(n_states) + 1) % n_states
    transmat = np.zeros((n_states, n_states))
    transmat[np.arange(n_states), successor] = 1.0
    for strong, junctions in _AUTOMATON_JUNCTIONS.items():
        for i, j in enumerate(junctions):
            transmat[j] = 0.0
            transmat[j, successor[j]] = strong
            for step in (1, 2):
                entry = successor[junctions[(i + step) % len(junctions)]]
                transmat[j, entry] = (1.0 - strong) / 2

    n_letters = _AUTOMATON_LETTERS_PER_GROUP
    n_symbols = n_letters * (int(_AUTOMATON_GROUPS.max()) + 1)
    group_of_symbol = np.arange(n_symbols) // n_letters
    emissionprob = (_AUTOMATON_GROUPS[:, np.newaxis] == group_of_symbol) / n_letters
    return Bunch(
        startprob=np.full(n_states, 1.0 / n_states),
        transmat=transmat,
        emissionprob=emissionprob,
    )


def make_automaton_sequence(
    n_samples: int = 2500,
    *,
    dwell: ArrayLike | None = None,
    min_dwell: int = 1,
    random_state: int | np.random.RandomState | None = None,
    return_model: bool = False,
) -> (
    tuple[NDArray[np.int64], NDArray[np.int64]] | tuple[NDArray[np.int64], NDArray[np.int64], Bunch]
):
    """Make a sequence from an automaton whose states share their letters.

    A reconstruction of Sequence 2 of [1]_, from a drawing of the automaton.  It has the
    published properties.  Groups of hidden states emit the same three letters with
    probability 1/3 each.  The strong transitions have probability 0.84 and 0.80.  The
    default length is 2500.  There are at least eleven hidden states, as the published
    3.37 bits of mutual information require.  Results are comparable with the published
    ones in kind, not in digits.

    Parameters
    ----------
    n_samples : int, default=2500
        Number of time steps, at least 1.
    dwell : float, array-like of float or None, default=None
        Mean number of steps for which a state lasts, at least `min_dwell`. A list is used
        in turn: state k has ``dwell[k % len(dwell)]``. None: every step is a transition
        of the automaton, as in [1]_.
    min_dwell : int, default=1
        Least number of steps for which a state lasts.  Dwell times are sums of
        `min_dwell` geometric variables (negative binomial from `min_dwell` up): geometric
        with 1, less variable with more.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw. Pass an int for the same sequence at every call.
    return_model : bool, default=False
        Whether to return the true parameters.

    Returns
    -------
    X : ndarray of shape (n_samples, 1), dtype int64
        The letters as codes 0 to 14. Code `c` belongs to letter group `c // 3`.
    states : ndarray of shape (n_samples,), dtype int64
        The hidden states, 0 to 14.
    model : :class:`~sklearn.utils.Bunch`
        Only if `return_model=True`. The true model, with the attributes

        startprob : ndarray of shape (15,)
            Distribution of the first state: uniform, the stationary distribution.
        transmat : ndarray of shape (15, 15)
            ``transmat[j, k]`` is the probability of going from state j to state k, with
            `dwell` at the end of a dwell time.
        emissionprob : ndarray of shape (15, 15)
            ``emissionprob[k, v]`` is the probability that state k emits letter v.

    Raises
    ------
    TypeError
        If `n_samples` or `min_dwell` is not an integer, or `dwell` is not numbers.
    ValueError
        If one of them is out of range, or `random_state` cannot be a seed.

    See Also
    --------
    make_repeating_sequence : The deterministic sequence of the same paper.

    Notes
    -----
    There are 15 hidden states in five groups of three, and 15 letters.  The strong
    transitions lead through the states 0, 1, ..., 14 and back to 0.  The letter groups
    read ABCDE ABCED ABEDC.  A letter alone leaves three possible states, and its
    neighbours determine the state.  Seven states always continue along the cycle.  Four
    states continue with probability 0.84 and jump to either of two other states with 0.08
    each.  Four states continue with 0.80 and jump with 0.10 each.  A jump leads to the
    successor of another of these junctions.

    What follows is without `dwell`. The stationary distribution is uniform, with an
    entropy of 3.907 bits (2.708 nats): no labelling has more mutual information with the
    hidden states. The most probable path under the true model has about 3.85 bits. The
    perplexity per letter is 4.05 under the exact model (forward algorithm, two million
    steps, standard error 0.002) and 6.93 under the exact bigram distribution of the
    letters.

    References
    ----------
    .. [1] T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw:
       Accurate Sampling for Hierarchical Chinese Restaurant Process Hidden Markov
       Models", arXiv:1106.0474, 2011.

    Examples
    --------
    >>> from skihmm.datasets import make_automaton_sequence
    >>> X, states, model = make_automaton_sequence(random_state=0, return_model=True)
    >>> X.shape, states.shape, model.transmat.shape
    ((2500, 1), (2500,), (15, 15))
    >>> model.transmat[2].round(2)
    array([0.  , 0.  , 0.  , 0.84, 0.  , 0.  , 0.  , 0.  , 0.08, 0.  , 0.  ,
           0.08, 0.  , 0.  , 0.  ])

    States that last for 5 steps or more:

    >>> make_automaton_sequence(20, dwell=8, min_dwell=5, random_state=0)[1]
    array([2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4])
    """
    n_samples = check_integer("n_samples", n_samples, 1)
    means, n_stages = _check_dwell(dwell, min_dwell)
    check_flag("return_model", return_model)
    rng = check_random_state(random_state)
    model = _automaton_model()
    n_states = model.startprob.size

    # By inversion: the number of cumulative probabilities at or below a uniform.
    cumulative = model.transmat.cumsum(axis=1)
    uniforms = rng.uniform(size=n_samples)
    states = np.empty(n_samples, dtype=np.int64)
    states[0] = rng.randint(n_states)
    for t in range(1, n_samples):
        k = np.searchsorted(cumulative[states[t - 1]], uniforms[t], side="right")
        # A cumulative sum may end below one by a rounding error.
        states[t] = min(k, n_states - 1)
    if means.size:
        lengths = np.minimum(_draw_lengths(states, means, n_stages, rng), n_samples)
        n_runs = np.searchsorted(lengths.cumsum(), n_samples) + 1
        states = np.repeat(states[:n_runs], lengths[:n_runs])[:n_samples]

    letters = rng.randint(_AUTOMATON_LETTERS_PER_GROUP, size=n_samples)
    X = _AUTOMATON_GROUPS[states] * _AUTOMATON_LETTERS_PER_GROUP + letters
    X = X.astype(np.int64)[:, np.newaxis]
    if return_model:
        return X, states, model
    return X, states


def _draw_index(weights: list[float], rng: np.random.RandomState) -> int:
    """Return an index with probability proportional to its weight."""
    remaining = rng.uniform() * sum(weights)
    for i, weight in enumerate(weights):
        remaining -= weight
        if remaining < 0:
            return i
    # Reached by rounding only; the last possible index takes the excess.
    return max(i for i, weight in enumerate(weights) if weight > 0)


class _Franchise:
    """Seating of customers in restaurants that share their dishes.

    Without a number of dishes there is always a new one; otherwise the base on top is
    uniform.
    """

    def __init__(self, alpha: float, gamma: float, n_dishes: int | None = None) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.n_dishes = n_dishes
        self.tables: dict[tuple[int, int], list[int]] = {}  # (row, dish) -> sizes
        self.n_tables_of_dish = [0] * (n_dishes or 0)

    def draw(self, row: int, rng: np.random.RandomState) -> int:
        """Draw a dish in a restaurant, seat the customer, and return the dish."""
        n_tables = sum(self.n_tables_of_dish)
        n_seen = len(self.n_tables_of_dish)
        weights = [float(m) for m in self.n_tables_of_dish]
        if self.n_dishes is None:
            weights.append(self.gamma)
        else:
            weights = [m + self.gamma / self.n_dishes for m in weights]
        # The denominator of the base is the number of all tables plus gamma.
        opening = [self.alpha * (w / (n_tables + self.gamma)) for w in weights]
        seated = [sum(self.tables.get((row, k), ())) for k in range(len(weights))]
        dish = _draw_index([n + w for n, w in zip(seated, opening, strict=True)], rng)
        sizes = self.tables.setdefault((row, dish), [])
        if dish == n_seen:
            # The first customer of a new dish always opens a table.
            self.n_tables_of_dish.append(0)
            table = 0
        else:
            table = _draw_index([*sizes, opening[dish]], rng)
        if table == len(sizes):
            sizes.append(0)
            self.n_tables_of_dish[dish] += 1
        sizes[table] += 1
        return dish


class _DirichletEmissions:
    """Symbol counts per state under a symmetric Dirichlet prior; no seating."""

    def __init__(self, n_symbols: int, concentration: float) -> None:
        self.n_symbols = n_symbols
        self.concentration = concentration
        self.counts: dict[int, list[int]] = {}

    def draw(self, k: int, rng: np.random.RandomState) -> int:
        """Draw a symbol from state k, count it, and return its code."""
        counts = self.counts.setdefault(k, [0] * self.n_symbols)
        w = _draw_index([c_kw + self.concentration for c_kw in counts], rng)
        counts[w] += 1
        return w


def make_hcrp_hmm(
    n_samples: int = 100,
    *,
    alpha: float = 1.0,
    gamma: float = 1.0,
    emission: Literal["hcrp", "dirichlet"] = "hcrp",
    n_symbols: int = 10,
    emission_alpha: float = 1.0,
    emission_gamma: float = 1.0,
    n_sequences: int = 1,
    dwell: ArrayLike | None = None,
    min_dwell: int = 1,
    random_state: int | np.random.RandomState | None = None,
    return_seating: bool = False,
) -> (
    tuple[NDArray[np.int64], NDArray[np.int64]] | tuple[NDArray[np.int64], NDArray[np.int64], Bunch]
):
    r"""Draw states and symbols from the prior of an HCRP hidden Markov model.

    The number of states is drawn too. All transition and emission distributions are
    integrated out: the sequence is built step by step from the Chinese restaurant
    franchise [1]_, as in [2]_.

    Parameters
    ----------
    n_samples : int, default=100
        Number of time steps, over all sequences, at least 1.
    alpha : float, default=1.0
        Lower concentration of the transitions, > 0. Larger values give more similar rows
        of the transition matrix.
    gamma : float, default=1.0
        Top concentration of the transitions, > 0. Larger values give more states.
    emission : {"hcrp", "dirichlet"}, default="hcrp"
        "hcrp": the symbol distributions of the states are draws of a Dirichlet process
        with a common base. "dirichlet": they are independent draws of a symmetric
        Dirichlet distribution.
    n_symbols : int, default=10
        Size V of the vocabulary, at least 1.
    emission_alpha : float, default=1.0
        "hcrp": lower concentration of the emissions. "dirichlet": the concentration of
        each symbol. Must be > 0.
    emission_gamma : float, default=1.0
        "hcrp": top concentration of the emissions, > 0. Not used by "dirichlet".
    n_sequences : int, default=1
        Number of sequences, 1 to `n_samples`.  Lengths differ by one at most, longer
        sequences first.  Sequences share all distributions, also of the first state.
    dwell : float, array-like of float or None, default=None
        Mean number of steps of a run, at least `min_dwell`.  The end of a run draws the
        next state, perhaps the same state again.  A list is used in turn: state k has
        ``dwell[k % len(dwell)]``.  None: the next state is drawn at every step.
    min_dwell : int, default=1
        Least number of steps of a run. Lengths are sums of so many geometric variables
        (negative binomial from `min_dwell` up). A sequence begins with a run, and its
        last run is cut.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw. Pass an int for the same result at every call.
    return_seating : bool, default=False
        Whether to return the sequence ids and the seating of the customers.

    Returns
    -------
    X : ndarray of shape (n_samples, 1), dtype int64
        The symbols, codes from 0 to ``n_symbols - 1``.
    states : ndarray of shape (n_samples,), dtype int64
        The hidden states, numbered 0, 1, ... in the order of appearance.
    seating : :class:`~sklearn.utils.Bunch`
        Only if `return_seating=True`, with the attributes

        groups : ndarray of shape (n_samples,), dtype int64
            The sequence that each time step belongs to: 0, 1, ..., in order.
        transitions : dict
            ``transitions[j, k]`` lists the sizes of the tables of restaurant j
            (previous state) that serve dish k (state). The restaurant of first time
            steps is ``j = -1``. Pairs that do not occur have no key. With `dwell`,
            customers are runs.
        emissions : dict
            ``emissions[k, w]`` lists the sizes of the tables of state k that serve
            symbol w. Absent if ``emission="dirichlet"``, which has no tables.

    Raises
    ------
    TypeError
        If a count is not an integer, or a concentration or dwell time not a number.
    ValueError
        If one of these is out of range, or `emission` is unknown.

    See Also
    --------
    make_automaton_sequence : A sequence from an automaton of ten states.
    make_repeating_sequence : A deterministic sequence.

    Notes
    -----
    Let restaurant j hold :math:`n_{jk}` customers of dish k, :math:`n_j` in all, let
    :math:`m_k` tables of all restaurants serve dish k, :math:`m` in all. The next
    customer of restaurant j gets dish k with probability

    .. math:: \frac{n_{jk} + \alpha\, m_k / (m + \gamma)}{n_j + \alpha},

    and a new dish with the rest.  The customer joins a table of the dish with weight the
    size of the table, or opens a table with weight :math:`\alpha\, m_k / (m + \gamma)`.
    The first customer of a new dish always opens a table.  Emissions by "hcrp" also have
    tables, with :math:`(e_w + \gamma_e / V) / (e + \gamma_e)` in place of
    :math:`m_k / (m + \gamma)`.  Emissions by "dirichlet" have the probability
    :math:`(c_{kw} + a) / (c_k + V a)`.

    The function is plain Python, as a check of the compiled samplers. A draw takes time
    proportional to `n_samples` times the number of states plus `n_symbols`.

    References
    ----------
    .. [1] Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, "Hierarchical Dirichlet
       Processes", Journal of the American Statistical Association 101(476),
       1566-1581, 2006.
    .. [2] T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw:
       Accurate Sampling for Hierarchical Chinese Restaurant Process Hidden Markov
       Models", arXiv:1106.0474, 2011.

    Examples
    --------
    >>> from skihmm.datasets import make_hcrp_hmm
    >>> X, states, seating = make_hcrp_hmm(
    ...     6, n_sequences=2, random_state=0, return_seating=True
    ... )
    >>> X.shape, states.shape
    ((6, 1), (6,))
    >>> seating.groups
    array([0, 0, 0, 1, 1, 1])
    >>> sum(sum(sizes) for sizes in seating.transitions.values())
    6
    """
    n_samples = check_integer("n_samples", n_samples, 1)
    n_symbols = check_integer("n_symbols", n_symbols, 1)
    n_sequences = check_integer("n_sequences", n_sequences, 1)
    if n_sequences > n_samples:
        raise ValueError(
            f"n_sequences={n_sequences}; expected an integer from 1 to {n_samples}, the "
            "number of time steps."
        )
    alpha = check_positive("alpha", alpha)
    gamma = check_positive("gamma", gamma)
    emission_alpha = check_positive("emission_alpha", emission_alpha)
    emission_gamma = check_positive("emission_gamma", emission_gamma)
    means, n_stages = _check_dwell(dwell, min_dwell)
    check_flag("return_seating", return_seating)
    emissions: _Franchise | _DirichletEmissions
    if check_choice("emission", emission, ("hcrp", "dirichlet")) == "hcrp":
        emissions = _Franchise(emission_alpha, emission_gamma, n_symbols)
    else:
        emissions = _DirichletEmissions(n_symbols, emission_alpha)
    rng = check_random_state(random_state)

    groups = np.repeat(
        np.arange(n_sequences, dtype=np.int64),
        [part.size for part in np.array_split(np.arange(n_samples), n_sequences)],
    )
    transitions = _Franchise(alpha, gamma)
    states = np.empty(n_samples, dtype=np.int64)
    X = np.empty((n_samples, 1), dtype=np.int64)
    remaining = 0  # steps of the run
    for t in range(n_samples):
        is_first = t == 0 or groups[t] != groups[t - 1]
        if is_first or remaining == 0:
            states[t] = transitions.draw(_START if is_first else int(states[t - 1]), rng)
            remaining = 1
            if means.size:
                remaining = _draw_lengths(states[t : t + 1], means, n_stages, rng)[0]
        else:
            states[t] = states[t - 1]
        remaining -= 1
        X[t, 0] = emissions.draw(int(states[t]), rng)

    if not return_seating:
        return X, states
    seating = Bunch(groups=groups, transitions=transitions.tables)
    if isinstance(emissions, _Franchise):
        seating.emissions = emissions.tables
    return X, states, seating
