"""Naive sweeps of the step-wise baselines, written from their definitions.

A sweep takes a `NaiveHMM`, labels with the seating of everything, and leaves one behind.
Rows, sticks and emission parameters are dictionaries with an entry `REST` for new states;
`rng` is a ``numpy.random.Generator``.
"""

from __future__ import annotations

from collections import Counter

from reference.enumeration import START, HCRPEmission
from reference.seating import NaiveFranchise, NaiveHMM, random_choices

REST = "rest"


def _dirichlet(shapes: dict, rng) -> dict:
    keys = list(shapes)
    values = rng.dirichlet([shapes[key] for key in keys])
    return dict(zip(keys, values.tolist(), strict=True))


def _pick(weights: dict, rng):
    keys = list(weights)
    return keys[random_choices(rng)([weights[key] for key in keys])]


def _sticks(model: NaiveHMM, rng) -> dict:
    """The shared distribution given the numbers of tables."""
    franchise = model.transitions
    shapes = {k: franchise.dish_tables[k] for k in franchise.represented()}
    return _dirichlet({**shapes, REST: franchise.gamma}, rng)


def _break(beta: dict, label, gamma: float, rng) -> None:
    share = rng.beta(1, gamma)
    beta[label] = share * beta[REST]
    beta[REST] *= 1 - share


def _seated(customers, base: dict, like: NaiveFranchise, rng) -> NaiveFranchise:
    """Customers (row, dish) seated one by one given the base measure."""
    franchise = NaiveFranchise(like.alpha, like.gamma, like.n_dishes)
    for row, dish in customers:
        sizes = franchise.tables.setdefault((row, dish), [])
        fresh = like.alpha * base[dish] if sizes else 1.0
        table = random_choices(rng)([*sizes, fresh])
        if table == len(sizes):
            sizes.append(0)
            franchise.dish_tables[dish] += 1
            franchise.n_tables += 1
        sizes[table] += 1
        franchise.row_total[row] += 1
    return franchise


def _reseat_transitions(model: NaiveHMM, beta: dict, rng) -> None:
    draws = [(model.predecessor(t), k) for t, k in enumerate(model.x)]
    model.transitions = _seated(draws, beta, model.transitions, rng)


def direct_assignment_sweep(model: NaiveHMM, rng) -> None:
    """Direct assignment (Teh et al. 2006)."""
    choose = random_choices(rng)
    alpha, gamma = model.transitions.alpha, model.transitions.gamma
    beta = _sticks(model, rng)
    for t in rng.permutation(len(model.x)).tolist():
        i, x, o = model.predecessor(t), model.x[t], model.successor(t)
        n = Counter((model.predecessor(s), k) for s, k in enumerate(model.x))
        n[i, x] -= 1
        if o is not None:
            n[x, o] -= 1
        model.emissions.remove_customer(x, model.y[t], choose)
        if model.x.count(x) == 1:
            beta[REST] += beta.pop(x)
        new = model.next_label
        weights = {}
        for k in [*beta]:
            label = new if k == REST else k
            weight = n[i, label] + alpha * beta[k]
            if o is not None:
                after = n.copy()
                after[i, label] += 1
                total = sum(count for (j, _), count in after.items() if j == label)
                weight *= (after[label, o] + alpha * beta[o]) / (total + alpha)
            weights[label] = weight * model.emissions.get_prob(label, model.y[t])
        k = _pick(weights, rng)
        if k == new:
            model.next_label += 1
            _break(beta, k, gamma, rng)
        model.x[t] = k
        model.emissions.add_customer(k, model.y[t], choose)
    _reseat_transitions(model, beta, rng)


class _Parameters:
    """Symbol distributions of the states, and of a fresh one, by column."""

    def __init__(self, model: NaiveHMM, emission, rng):
        self.rng, self.emission = rng, emission
        V = emission.n_symbols
        self.bases = []
        if isinstance(emission, HCRPEmission):
            for column in model.emissions.columns:
                root = {w: emission.gamma / V + column.dish_tables[w] for w in range(V)}
                g = _dirichlet(root, rng)
                self.bases.append({w: emission.alpha * g[w] for w in g})
        else:
            a = emission.concentration
            self.bases = [dict.fromkeys(range(V), a) for _ in model.emissions.columns]
        self.phi = {}
        for k in set(model.x):
            self.draw(k, [model.y[t] for t, label in enumerate(model.x) if label == k])
        self.phi[REST] = [
            {w: base[w] / sum(base.values()) for w in base} for base in self.bases
        ]

    def draw(self, k, rows) -> None:
        """The parameters of a state that has emitted these rows."""
        self.phi[k] = []
        for c, base in enumerate(self.bases):
            counts = Counter(row[c] for row in rows)
            shapes = {w: base[w] + counts[w] for w in base}
            self.phi[k].append(_dirichlet(shapes, self.rng))

    def prob(self, k, row) -> float:
        p = 1.0
        for phi, w in zip(self.phi[k], row, strict=True):
            p *= 1.0 if w is None else phi[w]
        return p

    def reseat(self, model: NaiveHMM) -> None:
        for c, column in enumerate(model.emissions.columns):
            customers = [
                (k, row[c])
                for k, row in zip(model.x, model.y, strict=True)
                if row[c] is not None
            ]
            if isinstance(column, Counter):
                model.emissions.columns[c] = Counter(customers)
            else:
                base = {w: b / column.alpha for w, b in self.bases[c].items()}
                model.emissions.columns[c] = _seated(customers, base, column, self.rng)


def stick_breaking_sweep(model: NaiveHMM, emission, rng, block_size=None) -> None:
    """Step-wise Gibbs sampling with all parameters explicit.

    With a block size only the steps of a grid may begin and end states.  Those between
    them come first, in two halves, and are drawn among the states of all other steps.
    """
    alpha, gamma = model.transitions.alpha, model.transitions.gamma
    beta = _sticks(model, rng)
    n = Counter((model.predecessor(t), k) for t, k in enumerate(model.x))
    pi = {}
    for j in [START, *(k for k in beta if k != REST)]:
        pi[j] = _dirichlet({k: alpha * beta[k] + n[j, k] for k in beta}, rng)
    parameters = _Parameters(model, emission, rng)

    def pick(t, states):
        i, o, weights = model.predecessor(t), model.successor(t), {}
        for k in states:
            out = 1.0 if o is None else beta[o] if k == REST else pi[k][o]
            weights[k] = pi[i][k] * out * parameters.prob(k, model.y[t])
        return _pick(weights, rng)

    steps = range(len(model.x))
    visits = rng.permutation(len(steps)).tolist()
    if block_size is not None:
        visits = steps[rng.integers(block_size + 1) :: block_size + 1]
        piece = {t: sum(h < t for h in visits) for t in steps if t not in visits}
        for half in (0, 1):
            free = [t for t in piece if piece[t] % 2 == half]
            states = sorted({model.x[t] for t in steps if t not in free})
            for t in rng.permutation(free).tolist():
                if model.x[t] in states:
                    model.x[t] = pick(t, states)
    for t in visits:
        i, x, o = model.predecessor(t), model.x[t], model.successor(t)
        if model.x.count(x) == 1:
            beta[REST] += beta.pop(x)
            del pi[x], parameters.phi[x]
            for row in pi.values():
                row[REST] += row.pop(x)
        k = pick(t, beta)
        if k == REST:
            k = model.next_label
            model.next_label += 1
            _break(beta, k, gamma, rng)
            for j, row in pi.items():
                share = rng.beta(alpha * beta[k] + (j == i), alpha * beta[REST])
                row[k] = share * row[REST]
                row[REST] *= 1 - share
            pi[k] = _dirichlet(
                {label: alpha * beta[label] + (label == o) for label in beta}, rng
            )
            parameters.draw(k, [model.y[t]])
        model.x[t] = k
    parameters.reseat(model)
    _reseat_transitions(model, beta, rng)
