"""Naive franchise and model, written from the definitions.

The predictive and seating laws are those of the hierarchical Chinese restaurant process
of Makino, Takei, Sato and Mochihashi (2011), arXiv 1106.0474, with the total number of
tables in all denominators of the top restaurant.  Everything random is a call of
``choose(weights)``, which returns an index with probability proportional to its weight.
With `random_choices` that is a simulation, with `all_outcomes` an enumeration: the
same code gives samples and exact transition kernels.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from reference.enumeration import (
    START,
    DirichletEmission,
    HCRPEmission,
    SeatingCounts,
    as_rows,
    set_partitions,
)

Choose = Callable[[Sequence[float]], int]


# -- sources of randomness ------------------------------------------------------------


def random_choices(rng) -> Choose:
    """``choose`` that draws with a ``numpy.random.Generator``."""

    def choose(weights):
        if len(weights) == 1:
            return 0
        u = rng.random() * sum(weights)
        for i, weight in enumerate(weights):
            u -= weight
            if u < 0:
                return i
        return max(i for i, weight in enumerate(weights) if weight > 0)

    return choose


def all_outcomes(function: Callable[[Choose], object]) -> Iterator[tuple]:
    """Run ``function(choose)`` once for every sequence of choices it can make.

    Yields
    ------
    probability, result
    """
    script: list[int] = []
    while True:
        choose = _Scripted(script)
        result = function(choose)
        yield choose.probability, result
        # The next script in lexicographic order.
        script = choose.taken
        while script and script[-1] + 1 == choose.options[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


class _Scripted:
    """``choose`` that follows a script, then takes the first possible option."""

    def __init__(self, script: list[int]):
        self.script = script
        self.taken: list[int] = []
        self.options: list[int] = []
        self.probability = 1.0

    def __call__(self, weights):
        possible = [i for i, weight in enumerate(weights) if weight > 0]
        position = len(self.taken)
        pick = self.script[position] if position < len(self.script) else 0
        self.taken.append(pick)
        self.options.append(len(possible))
        self.probability *= weights[possible[pick]] / sum(weights)
        return possible[pick]


# -- seatings -------------------------------------------------------------------------


class NaiveFranchise:
    """Restaurants with lists of table sizes that share one top restaurant.

    Parameters
    ----------
    alpha, gamma : float
        Concentration of the restaurants and of the top restaurant.
    n_dishes : int, optional
        The base of the top restaurant is uniform over that many dishes, and the top
        restaurant is collapsed.  Without it there are infinitely many dishes, and any
        dish that is served nowhere stands for one fresh dish.
    """

    def __init__(self, alpha: float, gamma: float, n_dishes: int | None = None):
        self.alpha, self.gamma, self.n_dishes = alpha, gamma, n_dishes
        self.tables: dict[tuple, list[int]] = {}
        # Sums of the above, kept only because the tests need some speed.
        self.row_total: dict = defaultdict(int)
        self.dish_tables: dict = defaultdict(int)
        self.n_tables = 0

    def copy(self) -> NaiveFranchise:
        """Independent copy."""
        other = NaiveFranchise(self.alpha, self.gamma, self.n_dishes)
        other.tables = {pair: list(sizes) for pair, sizes in self.tables.items()}
        other.row_total = self.row_total.copy()
        other.dish_tables = self.dish_tables.copy()
        other.n_tables = self.n_tables
        return other

    def represented(self) -> list:
        """Dishes with a table."""
        return [dish for dish, tables in self.dish_tables.items() if tables]

    def top_prob(self, dish) -> float:
        """Predictive of the top restaurant."""
        tables = self.dish_tables.get(dish, 0)
        if self.n_dishes is not None:
            weight = tables + self.gamma / self.n_dishes
        else:
            weight = tables or self.gamma
        return weight / (self.n_tables + self.gamma)

    def get_prob(self, row, dish) -> float:
        """Predictive probability of a dish in a restaurant."""
        draws = sum(self.tables.get((row, dish), ()))
        top = self.top_prob(dish)
        return (draws + self.alpha * top) / (self.row_total.get(row, 0) + self.alpha)

    def add_customer(self, row, dish, choose: Choose) -> None:
        """Seat a customer given the dish."""
        sizes = self.tables.setdefault((row, dish), [])
        # A dish served nowhere has no table to join: the new one is certain.
        table = choose([*sizes, self.alpha * self.top_prob(dish)])
        if table == len(sizes):
            sizes.append(0)
            self.dish_tables[dish] += 1
            self.n_tables += 1
        sizes[table] += 1
        self.row_total[row] += 1

    def log_joint(self) -> float:
        """Log probability of the seating of identified customers and of its dishes."""
        by_row, by_dish = Counter(), Counter()
        result = 0.0
        for (row, dish), sizes in self.tables.items():
            by_row[row] += sum(sizes)
            by_dish[dish] += len(sizes)
            for size in sizes:
                result += math.log(self.alpha) + math.lgamma(size)
        for n in by_row.values():
            result += math.lgamma(self.alpha) - math.lgamma(self.alpha + n)
        m = sum(by_dish.values())
        result += math.lgamma(self.gamma) - math.lgamma(self.gamma + m)
        for tables in by_dish.values():
            if self.n_dishes is None:
                result += math.log(self.gamma) + math.lgamma(tables)
            else:
                base = self.gamma / self.n_dishes
                result += math.lgamma(base + tables) - math.lgamma(base)
        return result

    def log_n_identities(self) -> float:
        """Log number of ways to give the places to identified customers.

        Customers of the same restaurant and dish can be exchanged.  The multiset of
        table sizes has probability ``exp(log_joint() + log_n_identities())``.
        """
        result = 0.0
        for sizes in self.tables.values():
            result += math.lgamma(sum(sizes) + 1)
            result -= sum(math.lgamma(size + 1) for size in sizes)
            result -= sum(math.lgamma(same + 1) for same in Counter(sizes).values())
        return result

    def counts(self) -> tuple[dict, dict]:
        """Draws and tables of every restaurant and dish."""
        return (
            {pair: sum(sizes) for pair, sizes in self.tables.items()},
            {pair: len(sizes) for pair, sizes in self.tables.items()},
        )

    def check(self) -> None:
        """Assert that the kept sums equal those of the lists."""
        rows, dishes = Counter(), Counter()
        for (row, dish), sizes in self.tables.items():
            assert sizes
            assert min(sizes) > 0
            rows[row] += sum(sizes)
            dishes[dish] += len(sizes)
        assert rows == +Counter(self.row_total)
        assert dishes == +Counter(self.dish_tables)
        assert self.n_tables == sum(dishes.values())


class NaiveCounts:
    """One column of `DirichletEmission`: counts only."""

    n_tables = 0

    def __init__(self, spec: DirichletEmission):
        self.spec, self.counts = spec, Counter()

    def copy(self) -> NaiveCounts:
        """Independent copy."""
        other = NaiveCounts(self.spec)
        other.counts = self.counts.copy()
        return other

    def get_prob(self, state, w) -> float:
        """Predictive of a symbol."""
        a, n_symbols = self.spec.concentration, self.spec.n_symbols
        total = sum(self.counts[state, v] for v in range(n_symbols))
        return (self.counts[state, w] + a) / (total + n_symbols * a)

    def add_customer(self, state, w, choose: Choose) -> None:
        """Count a symbol."""
        self.counts[state, w] += 1


class NaiveEmissions:
    """Symbols in columns, each of which is a `NaiveFranchise` or `NaiveCounts`."""

    def __init__(self, columns: Sequence):
        self.columns = columns

    def copy(self) -> NaiveEmissions:
        """Independent copy."""
        return NaiveEmissions([column.copy() for column in self.columns])

    def observed(self, row) -> list:
        """``[(column, symbol)]`` of those that are not missing."""
        return [pair for pair in zip(self.columns, row, strict=True) if pair[1] is not None]

    def get_prob(self, state, row) -> float:
        """Predictive of a row of symbols; a missing one has factor one."""
        return math.prod(column.get_prob(state, w) for column, w in self.observed(row))

    def add_customer(self, state, row, choose: Choose) -> None:
        """Seat or count the symbols of a row."""
        for column, w in self.observed(row):
            column.add_customer(state, w, choose)

    @property
    def n_tables(self) -> int:
        """Tables of all columns."""
        return sum(column.n_tables for column in self.columns)


# -- the model ------------------------------------------------------------------------


class NaiveHMM:
    """Labels of the time steps with the seating of all their draws.

    Parameters
    ----------
    y, emission, starts, alpha, gamma
        As for `reference.enumeration.Posterior` (discrete emissions only).
    labels : sequence of int
        The steps are seated in order of time.
    choose : callable
    transitions, row_of : optional
        Empty restaurants of another law, with the functions of `NaiveFranchise`, and
        ``row_of(t, j)``, the one in which step t is drawn after label j.
    """

    def __init__(
        self,
        y,
        emission,
        starts: Iterable[int] = (0,),
        alpha: float = 1.0,
        gamma: float = 1.0,
        *,
        labels: Sequence[int],
        choose: Choose,
        transitions=None,
        row_of: Callable | None = None,
    ):
        self.y = as_rows(y)
        self.starts = frozenset(starts)
        self.row_of = row_of or (lambda t, j: j)
        self.transitions = (transitions or NaiveFranchise(alpha, gamma)).copy()
        self.has_symbol_tables = isinstance(emission, HCRPEmission)
        columns = [
            NaiveFranchise(emission.alpha, emission.gamma, emission.n_symbols)
            if self.has_symbol_tables
            else NaiveCounts(emission)
            for _ in self.y[0]
        ]
        self.emissions = NaiveEmissions(columns)
        self.x = list(labels)
        self.log_seated = 0.0
        """Log of the product of the predictives met while the steps were seated."""
        for t, label in enumerate(self.x):
            for part, row, value in (
                (self.transitions, self.row_of(t, self.predecessor(t)), label),
                (self.emissions, label, self.y[t]),
            ):
                self.log_seated += math.log(part.get_prob(row, value))
                part.add_customer(row, value, choose)

    def copy(self) -> NaiveHMM:
        """Independent copy."""
        other = object.__new__(NaiveHMM)
        other.__dict__.update(self.__dict__)
        other.x = list(self.x)
        other.transitions = self.transitions.copy()
        other.emissions = self.emissions.copy()
        return other

    def predecessor(self, t: int):
        """Restaurant of the draw of step t."""
        return START if t in self.starts else self.x[t - 1]

    @property
    def labels(self) -> tuple[int, ...]:
        """Labels numbered by first appearance."""
        names = self._names()
        return tuple(names[label] for label in self.x)

    def _names(self) -> dict:
        names: dict = {}
        for label in self.x:
            names.setdefault(label, len(names))
        return names

    @property
    def cell(self) -> tuple:
        """``(labels, m, e)``, the cells of `Posterior.joint`."""
        return self.labels, self.transitions.n_tables, self.emissions.n_tables

    @property
    def key(self) -> tuple:
        """Labels and all table sizes, independent of names: a state of the chain."""
        names = {**self._names(), START: -1}
        columns, name = self.emissions.columns if self.has_symbol_tables else [], names.__getitem__
        return (
            self.labels,
            table_key(self.transitions.tables, lambda j: row_name(j, names), name),
            *(table_key(column.tables, name) for column in columns),
        )

    def counts(self) -> SeatingCounts:
        """What the predictives depend on."""
        n, m = self.transitions.counts()
        if self.has_symbol_tables:
            pairs = [column.counts() for column in self.emissions.columns]
            return SeatingCounts(n, m, [c for c, _ in pairs], [e for _, e in pairs])
        return SeatingCounts(n, m, [dict(column.counts) for column in self.emissions.columns])


def table_key(tables: dict, row, dish=lambda w: w) -> tuple:
    """Sizes of tables by the names of their rows and dishes, in order."""
    return tuple(sorted((row(j), dish(k), *sorted(sizes)) for (j, k), sizes in tables.items()))


def row_name(row, names: dict):
    """Name of a restaurant: of a label, or of (label, context) in a tree."""
    if not isinstance(row, tuple):
        return names[row]
    return names.get(row[0], -2), row[1]


# -- the exact law --------------------------------------------------------------------


def all_seatings(y, emission, starts=(0,), alpha=1.0, gamma=1.0, **law) -> dict:
    """Every labelling with every seating: ``{model.key: (model, probability)}``.

    The probability is that of the exact posterior, found by seating the steps in order
    in all possible ways.
    """
    models, weights = {}, defaultdict(float)
    for labels in set_partitions(len(y)):
        for probability, model in all_outcomes(
            lambda choose, labels=labels: NaiveHMM(
                y, emission, starts, alpha, gamma, labels=labels, choose=choose, **law
            )
        ):
            # A choice of tables given the labels, times the predictives, is the joint.
            weights[model.key] += probability * math.exp(model.log_seated)
            models[model.key] = model
    total = math.fsum(weights.values())
    return {key: (models[key], weights[key] / total) for key in models}
