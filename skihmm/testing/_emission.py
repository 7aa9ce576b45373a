"""Check of emissions: predictive probabilities and sufficient statistics."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from skihmm._data.given import GivenColumns
from skihmm._data.validation import as_matrix
from skihmm._typing import Array, Flags, Floats, Integers, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import BaseEmission
from skihmm.emissions._columns import name_columns
from skihmm.emissions._encoding import encode
from skihmm.emissions._given import given_roles
from skihmm.emissions._hidden_numbers import open_hidden
from skihmm.samplers import BaseSampler, BlockedBeam, StickBreakingGibbs
from skihmm.testing._enumeration import set_partitions
from skihmm.testing._probes import EmissionProbe
from skihmm.testing._recipe import check_recipe
from skihmm.testing._sampler import DOUBT
from skihmm.testing._small_models import Model, is_exact

# Slots of a new state and of the first occupied one.
NEW, FIRST = 0, 2
N_STATES = 3

# Views may keep what is negligible beside the most probable state at a tiny number.
SHOWN = 400.0

# Relative errors that rounding may leave: of a sum of logarithms, and after many moves.
ROUNDING, DRIFT = 1e-8, 1e-6

# Standard errors by which a mean may be off; exceeded, twice, once in 10^8 by chance.
MOST_ERRORS = 4.0
# Draws, by effective number, that a mean has to have to be judged.
LEAST_EFFECTIVE = 50

GARBAGE: tuple[object, ...] = (
    None,
    "text",
    -1,
    2**40,
    float("nan"),
    [],
    {},
    np.zeros(0),
    np.full((2, 2), np.nan),
    np.array(["a"]),
    np.arange(3, dtype=object),
)


def check_emission(
    emission: BaseEmission, X: MatrixLike, *, random_state: int = 0, verbose: bool = True
) -> None:
    """Check the properties of an emission that samplers rely on.

    With the statistics that the emission builds over X:

    * the product of predictive probabilities is independent of the order of the
      observations, and equals ``log_joint`` (with random tables: in expectation, and
      where tables leave no choice),
    * the rows and pairs of predictive probabilities, also in logs without a least value,
      equal the probabilities after additions, and a state without observations is like a
      new state,
    * a removal after an addition restores the statistics, and a rollback restores all
      bits,
    * 10,000 additions and removals leave no drift,
    * a missing observation has probability one and changes nothing,
    * records can be loaded, and corrupt records give a ValueError and leave the
      statistics unchanged,
    * parameters, if the emission draws them, reproduce the predictive probabilities on
      average,
    * values drawn from states, including a new one, have the predictive probabilities and
      expectations (densities up to a factor common to all states, which cancels in the
      posterior),
    * on a few rows of X the default sampler has the posterior over partitions that
      follows from the predictive probabilities.

    Besides, the emission has to be a recipe that can be cloned, printed and pickled, and
    encoded data must survive decoding.  ``state_parameters`` raises no error before a fit.
    Afterwards it has one entry per state, and its numbers belong to columns of the emission.
    A correct emission fails for fewer than one in
    1000 values of `random_state`.

    Parameters
    ----------
    emission : BaseEmission
        Emission, whose clone is fitted to X.
    X : array-like of shape (n_samples, n_features)
        At least 12 different rows, some missing if the emission takes missing rows.
    random_state : int, default=0
        Seed.
    verbose : bool, default=True
        Whether to print each check before it runs.

    Raises
    ------
    AssertionError
        If a property is violated, with its name.

    See Also
    --------
    check_sampler : The same for samplers.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.emissions import GammaPoisson
    >>> from skihmm.testing import check_emission
    >>> counts = np.random.default_rng(0).poisson(3, size=(40, 2)).astype(float)
    >>> counts[3] = np.nan
    >>> check_emission(GammaPoisson(), counts, verbose=False)
    """
    assert isinstance(emission, BaseEmission), f"{emission!r} is no skihmm.emissions.BaseEmission"
    check_recipe(emission)
    laws = _Laws(emission, X, random_state)
    checks = (
        ("encoded data", laws.check_recipe),
        ("parameters of the states", laws.check_state_parameters),
        ("missing observations", laws.check_missing),
        ("removals and rollbacks", laws.check_rollback),
        ("rows and pairs of predictive probabilities", laws.check_views),
        ("order of observations", laws.check_order),
        ("predictive probabilities after additions", laws.check_look_ahead),
        ("drift over 10,000 additions and removals", laws.check_drift),
        ("records", laws.check_records),
        ("drawn parameters", laws.check_parameters),
        ("drawn values", laws.check_values),
        ("posterior over partitions", laws.check_posterior),
    )
    for i, (what, check) in enumerate(checks, 1):
        if verbose:
            print(f"check {i}/{len(checks)}: {what}", flush=True)
        check()


# Where something is in a record, and an estimate, its expectation and its error.
Place: TypeAlias = tuple[str | int, ...]
Law: TypeAlias = tuple[Floats, Floats | float, Floats | float]


def _leaves(value: object, path: Place = ()) -> Iterator[Place]:
    """Iterate over the paths of the leaves of nested dicts and lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield (*path, i)
            yield from _leaves(inner, (*path, i))


def _at(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key]
    return value


def _bits(value: object) -> object:
    """Content of a record, for exact comparisons."""
    if isinstance(value, dict):
        return {key: _bits(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bits(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tolist().__repr__()
    return repr(value)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two records agree, with numbers up to a relative tolerance."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _same(one[key], other[key], tolerance) for key in one
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            _same(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    scale = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return one.shape == other.shape and bool(
        np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    )


@dataclass
class _OwnLikelihood:
    """Likelihood for the enumeration, from the predictive probabilities of the emission.

    With random tables the likelihood is the mean of the product of predictives over
    seatings; its error, below one per cent, is small beside the chains' errors.
    """

    laws: _Laws
    rows: NDArray[np.intp]
    counts_tables: bool = False

    def log_likelihood_by_tables(self, x: Sequence[int], y: object) -> dict[int, float]:
        """``{0: log p(y | x)}``."""
        n = 4000 if self.laws.is_seated else 1
        logs, probe = [], self.laws.probe(self.rows, len(self.rows) + FIRST)
        for _ in range(n):
            logs.append(sum(probe.add(t, FIRST + k) for t, k in enumerate(x)))
            probe.rollback()
        return {0: float(np.logaddexp.reduce(logs) - np.log(n))}

    def stats(self, y: object) -> EmissionStats:
        """Build the statistics."""
        return self.laws.stats(self.rows)


class _Laws:
    """The checks of :func:`check_emission` for one emission and data."""

    def __init__(self, emission: BaseEmission, X: MatrixLike, seed: int) -> None:
        self.where, self.seed = repr(emission), seed
        self.rng = np.random.default_rng([seed, 3])
        self.emission: BaseEmission = clone(emission)
        names = getattr(X, "columns", None)
        names = None if names is None else list(names)
        whole = as_matrix(X)
        found = GivenColumns.find([], given_roles(self.emission), whole.shape[1], names)
        given = None
        if len(found):
            X, columns = found.split(whole)
            given = found.emission(columns)
            names = None if names is None else list(np.delete(names, found.columns))
            self.emission = self.emission.with_given(given)
        name_columns(self.emission, names)
        fitted = self.emission.fit(X)
        assert fitted is self.emission, f"{self.where}: fit does not return the emission"
        self.codes = encode(self.emission, X, np.array([0]), given=given)
        n = len(self.codes)
        self.n_values = self.codes.shape[1] - self.emission.n_inputs
        assert n >= 12, f"{n} rows of X; expected 12 or more"
        values = np.array(np.ma.filled(X, None) if np.ma.isMA(X) else X, dtype=object)
        self.complete = [all(v is not None and v == v for v in row) for row in values]
        missing = np.asarray(self.emission.is_missing(self.codes))
        assert (missing.shape, missing.dtype) == ((n,), np.dtype(bool)), (
            f"{self.where}: is_missing returns the shape {missing.shape} of "
            f"{missing.dtype}; expected ({n},) of bool"
        )
        assert not missing.all(), "all rows of X are missing"
        self.missing = np.flatnonzero(missing)
        self.seen = np.flatnonzero(~missing)
        # Mostly observed rows, for the checks below.
        chosen = self.rng.permutation(self.seen)[:24]
        self.rows = np.concatenate([chosen, self.missing[:4]])
        self.labels = np.arange(len(self.rows)) % N_STATES
        # A few seatings may agree by chance.
        order = np.arange(len(self.rows))
        self.is_seated = len({self._product(order, i) for i in range(1, 101)}) > 1

    # -- building

    def stats(self, rows: NDArray[np.intp]) -> EmissionStats:
        """Build empty statistics over some rows."""
        stats = self.emission.make_stats(self.codes[rows])
        # First of all: further checks would read behind the last step.
        assert stats.n_steps == len(rows), (
            f"{self.where}: over {len(rows)} rows the statistics have {stats.n_steps} steps"
        )
        open_hidden(stats, np.zeros(1, np.intp))
        return stats

    def probe(self, rows: NDArray[np.intp], n_slots: int, salt: int = 0) -> EmissionProbe:
        """Build empty statistics behind a probe."""
        stream = RandomStream(np.random.SeedSequence([self.seed, salt]))
        return EmissionProbe(self.stats(rows), stream, n_slots)

    def chain(self, rows: NDArray[np.intp], labels: ArrayLike) -> ChainState:
        """Build a chain whose steps are in given states."""
        state = ChainState(np.array([0]), Franchise(), self.stats(rows), RandomStream(self.seed))
        state.start_from(np.asarray(labels))
        return state

    def _product(self, order: NDArray[np.intp], salt: int, labels: Integers | None = None) -> float:
        labels = self.labels if labels is None else labels
        probe = self.probe(self.rows, FIRST + int(max(labels)) + 1, salt)
        return float(sum(probe.add(t, FIRST + labels[t]) for t in order))

    def _full_probe(self) -> tuple[ChainState, EmissionProbe]:
        state = self.chain(self.rows, self.labels)
        state.canonicalise()  # makes room for more states
        return state, EmissionProbe(state.emission, state.stream)

    def _agree(self, one: ArrayLike, other: ArrayLike, tolerance: float = ROUNDING) -> bool:
        return bool(np.all(np.abs(np.subtract(one, other)) <= tolerance * (10 + np.abs(other))))

    # -- laws

    def check_recipe(self) -> None:
        """Check pickling, and that codes survive decoding."""
        again = pickle.loads(pickle.dumps(self.emission))
        # Codes of missing values need not survive decoding.
        codes = self.codes[self.complete, : self.n_values]
        decoded = self.emission.decode(codes)
        for name, found in (
            ("decoding and encoding", self.emission.encode_values(decoded)),
            ("pickling the emission", again.encode_values(decoded)),
        ):
            assert np.array_equal(np.asarray(found, float), np.asarray(codes, float)), (
                f"{self.where}: {name} changes the codes of observed values"
            )

    def check_state_parameters(self) -> None:
        """Check that summaries can show the parameters of the states."""
        try:
            _ = [part.emission.state_parameters for part in clone(self.emission).parts]
        except Exception as error:
            raise AssertionError(
                f"{self.where}: before a fit state_parameters gives {type(error).__name__}: "
                f"{error}; expected none, as an empty dict. Only emissions of with_states have "
                "parameters"
            ) from error
        state = self._full_probe()[0]
        arrays = state.to_arrays()
        n_states = arrays["n_states"]
        described = self.emission.with_states(arrays["emission"], n_states)
        n_columns = np.bincount(self.emission.columns(self.n_values).part)
        for part, n in zip(described.parts, n_columns.tolist(), strict=True):
            for name, parameter in part.emission.state_parameters.items():
                where = f"{self.where}: state_parameters[{name!r}]"
                found = np.shape(parameter.values)
                assert found[:1] == (n_states,), (
                    f"{where}.values has the shape {found}; expected ({n_states}, ...), one entry "
                    "per state"
                )
                for number in parameter.numbers:
                    is_known = number.column is None or 0 <= number.column < n
                    assert is_known, (
                        f"{where}: the number {number.word!r} has column {number.column!r}; "
                        f"expected None or an integer from 0 to {n - 1}, a column of the emission"
                    )
                    found = np.shape(number.select(parameter.values))
                    assert found == (n_states,), (
                        f"{where}: select of the number {number.word!r} gives the shape {found}; "
                        f"expected ({n_states},), one number per state"
                    )

    def check_missing(self) -> None:
        """Check that a missing observation has no effect."""
        state, probe = self._full_probe()
        before, log_joint = _bits(state.to_arrays()["emission"]), probe.log_joint()
        for t in range(len(self.rows) - len(self.missing[:4]), len(self.rows)):
            k = FIRST + int(self.labels[t])
            factors = probe.remove(t, k), probe.add(t, k)
            probe.commit()
            assert factors == (0.0, 0.0), (
                f"{self.where}: a missing observation has log probability "
                f"{factors[0]:.6g} when it leaves and {factors[1]:.6g} when it joins; "
                "expected 0"
            )
            row = probe.log_row(t)
            assert self._agree(row[FIRST : FIRST + N_STATES], 0.0), (
                f"{self.where}: of a missing observation the row is not one everywhere"
            )
            assert self._agree(probe.log_pair(t, FIRST, FIRST + 1), 0.0), (
                f"{self.where}: of a missing observation the pair is not one and one"
            )
        assert _bits(state.to_arrays()["emission"]) == before, (
            f"{self.where}: a missing observation changes the statistics"
        )
        assert probe.log_joint() == log_joint, (
            f"{self.where}: a missing observation changes log_joint"
        )

    def check_views(self) -> None:
        """Check that rows and pairs agree with additions."""
        probe = self._full_probe()[1]
        free = FIRST + N_STATES
        for t, slot in itertools.product(range(len(self.rows)), range(FIRST, free + 1)):
            # Once with the observation in its state, once without it.
            self._check_pair(probe, t, slot)
            probe.remove(t, FIRST + int(self.labels[t]))
            row, logs = self._check_pair(probe, t, slot)
            joined = probe.add(t, slot)
            what = "an empty state" if slot == free else "a state with observations"
            for place in (slot, NEW) if slot == free else (slot,):
                shown = row[place] > row.max() - SHOWN
                for name, found, is_bounded in (
                    ("row", row[place], True),
                    ("row of logs", logs[place], False),
                ):
                    assert (is_bounded and not shown) or self._agree(found, joined), (
                        f"{self.where}: an addition to {what} gives log p = "
                        f"{joined:.9g}, the {name} {found:.9g}"
                        + (" for a fresh state" if place == NEW else "")
                    )
            left = joined if self.is_seated else probe.remove(t, slot)
            assert self._agree(left, joined), (
                f"{self.where}: an observation joins a state with log p = {joined:.9g} "
                f"and leaves with {left:.9g}; they must be equal"
            )
            probe.rollback()

    def _check_pair(self, probe: EmissionProbe, t: int, slot: int) -> tuple[Floats, Floats]:
        row: Floats = probe.log_row(t)
        logs: Floats = probe.logs(t)
        shown = min(row[slot], row[FIRST]) > row.max() - SHOWN
        for name, found, source, expected in (
            ("pair", probe.log_pair(t, slot, FIRST), "row", row),
            ("pair of logs", probe.logs_of_pair(t, slot, FIRST), "row of logs", logs),
        ):
            ratio = expected[slot] - expected[FIRST]
            assert not shown or self._agree(found, ratio), (
                f"{self.where}: the {name} of two states has the log ratio {found:.9g}, "
                f"their {source} {ratio:.9g}"
            )
        return row, logs

    def check_order(self) -> None:
        """Check that the product of predictives is log_joint, in any order."""
        n = len(self.rows)
        own = self._product(np.arange(n), 0, np.arange(n))
        joint = self.probe(self.rows, FIRST + n)
        for t in range(n):
            joint.add(t, FIRST + t)
        joint.commit()
        found = joint.log_joint()
        assert self._agree(found, own), (
            f"{self.where}: with every observation in a state of its own log_joint is "
            f"{found:.9g}, the product of predictives {own:.9g}"
        )
        if self.is_seated:
            self._check_mean_order()
            return
        expected = self._product(np.arange(n), 0)
        for salt in range(5):
            order = self.rng.permutation(n)
            probe = self.probe(self.rows, FIRST + n, salt)
            total = sum(probe.add(t, FIRST + self.labels[t]) for t in order)
            assert self._agree(total, expected), (
                f"{self.where}: the product of predictives depends on the order of the "
                f"observations: exp({total:.9g}) and exp({expected:.9g})"
            )
            probe.commit()
            found = probe.log_joint()
            assert self._agree(found, expected), (
                f"{self.where}: log_joint is {found:.9g}, the product of predictives {expected:.9g}"
            )

    def _check_mean_order(self) -> None:
        """Check the same in expectation over the seatings."""
        rows = self.rng.permutation(self.seen)[:5]
        for attempt in (1, 2):
            n = 4000 * attempt
            logs = np.empty((2, n))
            for i, (direction, draw) in enumerate(itertools.product((1, -1), range(n))):
                probe = self.probe(rows, FIRST + 2, attempt * 10**6 + i)
                steps = range(5)[::direction]
                logs[i // n, draw] = sum(probe.add(t, FIRST + t % 2) for t in steps)
            ratio = np.exp(logs - logs.mean())
            means = ratio.mean(axis=1)
            error = np.sqrt((ratio.var(axis=1, ddof=1) / n).sum())
            # One table per observation leaves nothing but rounding.
            if abs(means[0] - means[1]) <= MOST_ERRORS * error + ROUNDING:
                return
        raise AssertionError(
            f"{self.where}: the mean product of predictives depends on the order of the "
            f"observations: by a factor of {means[0] / means[1]:.6g}, standard error "
            f"{error:.2g}"
        )

    def check_rollback(self) -> None:
        """Check that a rollback restores every bit."""
        state, probe = self._full_probe()
        n = len(self.rows)

        def look() -> tuple[object, str, float]:
            rows = [probe.log_row(t).tolist() for t in range(n)]
            return _bits(state.to_arrays()["emission"]), repr(rows), probe.log_joint()

        before = look()
        for _ in range(30):
            at: dict[int, int | None] = {}
            for t in self.rng.integers(n, size=self.rng.integers(1, 7)):
                place = at.get(t, FIRST + int(self.labels[t]))
                target = FIRST + int(self.rng.integers(N_STATES + 1))
                if place is None:
                    probe.add(t, target)
                    at[t] = target
                else:
                    probe.remove(t, place)
                    at[t] = None
            probe.rollback()
            found = look()
            for part, one, other in zip(
                ("the record", "rows", "log_joint"), found, before, strict=True
            ):
                assert one == other, (
                    f"{self.where}: {part} differ after a rollback from what they were; "
                    "a rollback has to restore every bit"
                )
        problem = state.check()
        assert problem is None, f"{self.where}: after rollbacks check says {problem!r}"

    def check_look_ahead(self) -> None:
        """Check that rows are the same if they were announced, also after a change."""
        _, probe = self._full_probe()
        n, t = len(self.rows), int(self.seen[0])
        place = FIRST + int(self.labels[t])

        def look() -> str:
            return repr([probe.log_row(t).tolist() for t in range(n)])

        expected = [look()]
        probe.look_ahead(0, n)
        found = [look()]
        probe.remove(t, place)
        found.append(look())
        probe.look_ahead(0, 0)
        expected.append(look())
        probe.rollback()
        assert found == expected, (
            f"{self.where}: after look_ahead rows differ from what they are without, "
            + ("before" if found[0] != expected[0] else "after")
            + " a change of the statistics"
        )

    def check_drift(self) -> None:
        """Check that ten thousand moves and their reversals leave no drift."""
        state, probe = self._full_probe()
        n = len(self.rows)
        before = state.to_arrays()["emission"]
        rows = np.array([probe.log_row(t)[: FIRST + N_STATES] for t in range(n)])
        place = FIRST + self.labels
        home = place.copy()
        for _ in range(10_000):
            t, k = int(self.rng.integers(n)), FIRST + int(self.rng.integers(N_STATES + 1))
            probe.remove(t, place[t])
            probe.add(t, k)
            place[t] = k
            probe.commit()
        for t in range(n):
            probe.remove(t, place[t])
            probe.add(t, home[t])
            probe.commit()
        problem = state.check()
        assert problem is None, (
            f"{self.where}: after 10,000 additions and removals check says {problem!r}"
        )
        if self.is_seated:
            return
        after = np.array([probe.log_row(t)[: FIRST + N_STATES] for t in range(n)])
        with np.errstate(invalid="ignore"):
            same = self._agree(after[rows > -np.inf], rows[rows > -np.inf], DRIFT)
        assert same, (
            f"{self.where}: predictive probabilities drift by up to "
            f"{np.nanmax(np.abs(after - rows)):.2g} in 10,000 additions and removals"
        )
        assert _same(before, state.to_arrays()["emission"], DRIFT), (
            f"{self.where}: the statistics drift in 10,000 additions and removals"
        )

    def check_records(self) -> None:
        """Check that records are loaded, and corrupt ones refused."""
        state, probe = self._full_probe()
        record = pickle.loads(pickle.dumps(state.canonicalise()))
        other = self.chain(self.rows, np.zeros(len(self.rows), dtype=int))
        other.from_arrays(record)
        found = other.to_arrays()
        assert _same(record["emission"], found["emission"], ROUNDING), (
            f"{self.where}: a record that is taken over gives another one"
        )
        problem = other.check()
        assert problem is None, f"{self.where}: of a record taken over check says {problem!r}"
        twin = EmissionProbe(other.emission, other.stream)
        for t in range(len(self.rows)):
            assert self._agree(
                twin.log_row(t)[FIRST : FIRST + N_STATES],
                probe.log_row(t)[FIRST : FIRST + N_STATES],
            ), f"{self.where}: a record that is taken over predicts otherwise"
        before, n_refused = _bits(found), 0
        for path in [(), *_leaves(record["emission"])]:
            for garbage in GARBAGE:
                wrong = copy.deepcopy(record)
                if path:
                    _at(wrong["emission"], path[:-1])[path[-1]] = garbage
                else:
                    wrong["emission"] = garbage
                place = "".join(f"[{key!r}]" for key in path)
                what = f"{garbage!r} for record['emission']{place}"
                try:
                    other.from_arrays(wrong)
                except ValueError:
                    n_refused += 1
                    assert _bits(other.to_arrays()) == before, (
                        f"{self.where}: a refused record ({what}) has changed the chain"
                    )
                    continue
                except Exception as error:
                    raise AssertionError(
                        f"{self.where}: {what} gives {type(error).__name__}: {error}; "
                        "expected a ValueError"
                    ) from error
                problem = other.check()
                # A single number, such as a concentration, may have any value.
                same = isinstance(_at(record["emission"], path), float | int) or _same(
                    record["emission"], other.to_arrays()["emission"], DRIFT
                )
                assert (problem, same) == (None, True), (
                    f"{self.where}: {what} is taken for a record; check says {problem!r}"
                )
                other.from_arrays(record)
        assert n_refused, f"{self.where}: no garbage was refused"

    def check_parameters(self) -> None:
        """Check that drawn parameters reproduce the predictive probabilities."""
        state, probe = self._full_probe()
        if not state.emission.draws_parameters:
            return
        n_seen = len(self.rows) - len(self.missing[:4])
        steps = np.repeat(np.arange(min(n_seen, 6)), N_STATES)
        places = FIRST + np.tile(np.arange(N_STATES), min(n_seen, 6))
        expected = np.array([probe.log_row(t)[k] for t, k in zip(steps, places, strict=True)])
        suspects = np.ones(len(steps), dtype=bool)
        for n in (2000, 8000):
            log_p = probe.draw_log_likelihoods(steps, places, n) - expected
            ratio = np.exp(np.minimum(log_p, 500.0))
            error = np.sqrt(ratio.var(axis=0, ddof=1) / n) + 1e-9
            suspects &= np.abs(ratio.mean(axis=0) - 1.0) > MOST_ERRORS * error
            # A few rare draws may have nearly all of the sum: then the error is none.  (Gamma
            # observations near a smallest value: .35 +- .12 of 8,000 draws, .93 of 400,000.)
            suspects &= ratio.sum(axis=0) ** 2 > LEAST_EFFECTIVE * (ratio**2).sum(axis=0)
        worst = int(np.argmax(suspects))
        assert not suspects.any(), (
            f"{self.where}: the probability of an observation given drawn parameters is "
            f"on average {ratio.mean(axis=0)[worst]:.6g} times the predictive one, "
            f"standard error {error[worst]:.2g}; expected 1"
        )

    def check_values(self) -> None:
        """Check that drawn values have the predictive probabilities and expectations."""
        suspects: dict[str, Flags] = {}
        for n in (1000, 4000):
            laws = self._value_laws(n)
            for law, (found, expected, error) in laws.items():
                is_off = np.abs(found - expected) > MOST_ERRORS * error + ROUNDING
                suspects[law] = is_off & suspects.get(law, True)
            if not any(wrong.any() for wrong in suspects.values()):
                return
        law = next(law for law, wrong in suspects.items() if wrong.any())
        seen, wanted, error = (
            float(np.broadcast_to(numbers, suspects[law].shape)[suspects[law]][0])
            for numbers in laws[law]
        )
        raise AssertionError(
            f"{self.where}: {law}: {seen:.6g}, standard error {error:.2g}; expected {wanted:.6g}"
        )

    def _value_laws(self, n: int) -> dict[str, Law]:
        """Estimates from n values of every state, their exact values and errors."""
        places = np.array([NEW, *range(FIRST, FIRST + N_STATES)], dtype=np.int32)

        def seated(codes: Array) -> tuple[EmissionStats, EmissionProbe, RandomStream]:
            # From one stream, so at the same tables for any further codes.
            stats = self.emission.make_stats(codes)
            open_hidden(stats, np.zeros(1, np.intp))
            # The weights of new values are unknown.
            hidden = stats.hidden()
            for weights in hidden.values():
                weights[len(weights) * len(self.rows) // len(codes) :] = np.nan
            stats.set_hidden(hidden)
            stream = RandomStream(np.random.SeedSequence([self.seed, 5]))
            probe = EmissionProbe(stats, stream, FIRST + N_STATES)
            for t, k in enumerate(self.labels):
                probe.add(t, FIRST + int(k))
            probe.commit()
            return stats, probe, stream

        codes = self.codes[self.rows]
        inputs = codes[0, self.n_values :]
        stats, _, stream = seated(codes)
        try:
            columns = [np.asarray(column) for column in stats.predictives(places, inputs)]
            values = stats.draw_values(
                np.repeat(places, n),
                [column.shape[1] if column.ndim == 2 else 0 for column in columns],
                stream,
                np.tile(inputs, (len(places) * n, 1)),
            )
        except NotImplementedError as missing:
            raise AssertionError(f"{self.where}: {missing}; HCRPHMM.sample needs it") from missing
        drawn = np.column_stack(values).astype(self.codes.dtype)
        new_rows = np.column_stack([drawn, np.tile(inputs, (len(drawn), 1))])
        probe = seated(np.concatenate([codes, new_rows]))[1]
        log_p = np.array(
            [probe.log_row(t)[places] for t in range(len(codes), len(codes) + len(drawn))]
        )
        laws: dict[str, Law] = {}

        # For values from the mixture of all states the mean of p(y | k) over the mixture's density
        # is one, and no ratio exceeds the number of states.
        log_mixture = np.logaddexp.reduce(log_p, axis=1) - np.log(len(places))
        ratio = np.exp(log_p - log_mixture[:, None]).reshape(len(places), n, -1)
        laws[
            "a predictive probability (or density) does not integrate to what those of "
            "other states do, or values are not drawn from it; its mean ratio to the "
            "mixture of all"
        ] = (
            ratio.mean(axis=(0, 1)),
            1.0,
            np.sqrt((ratio.var(axis=1, ddof=1) / n).sum(axis=0)) / len(places),
        )

        # Values of the first half recur with their probability, unless values are
        # continuous.
        mass, share = np.zeros(len(places)), np.zeros(len(places))
        for i, rows in enumerate(np.split(drawn, len(places))):
            known, first = np.unique(rows[: n // 2], axis=0, return_index=True)
            mass[i] = np.exp(log_p[i * n + first, i]).sum()
            seen = {tuple(row) for row in known.tolist()}
            share[i] = np.mean([tuple(row) in seen for row in rows[n // 2 :].tolist()])
        comes_again = share > 0.05
        laws["the share of values that are drawn again, against their probability"] = (
            share,
            mass,
            np.where(comes_again, np.sqrt(share * (1 - share) / (n // 2) + 4 / n**2), np.inf),
        )

        for c, (column, value) in enumerate(zip(columns, values, strict=True)):
            each = np.split(np.asarray(value), len(places))
            if column.ndim == 2:
                laws[f"predictives of column {c} do not sum to one"] = (
                    column.sum(axis=1),
                    1.0,
                    0.0,
                )
                found = [
                    np.bincount(v.astype(np.intp), minlength=column.shape[1]) / n for v in each
                ]
                laws[f"how often a symbol of column {c} is drawn"] = (
                    np.array(found),
                    column,
                    np.sqrt((column + 1 / n) / n),
                )
            else:
                # The mean of a new state may not exist, or have a large error.
                mean, numbers = column[1:], np.array(each[1:], dtype=float)
                if np.iscomplexobj(mean):  # of angles, as a sine and a cosine
                    turns = numbers / self.emission.columns(len(columns)).periods[c]
                    mean = np.concatenate([mean.imag, mean.real])
                    numbers = np.vstack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])
                error = numbers.std(axis=1, ddof=1) / np.sqrt(n)
                laws[f"the mean of values drawn of column {c}, against predictives"] = (
                    numbers.mean(axis=1),
                    mean,
                    np.where(np.isfinite(mean), error, np.inf),
                )
        return laws

    def check_posterior(self) -> None:
        """Compare the default sampler with an enumeration from the predictives."""
        n = 4 if self.is_seated else 5
        rows = self.rng.permutation(self.seen)[: n - 1]
        rows = np.concatenate([rows, self.missing[:1]])
        rows = np.concatenate([rows, self.seen[: n - len(rows)]])
        model = Model((None,) * n, _OwnLikelihood(self, rows), (0, 2), 2.0, 1.5)
        assert len(model.posterior.probabilities) == sum(1 for _ in set_partitions(n))
        samplers: list[BaseSampler] = [BlockedBeam(3, split_merge_rate=1)]
        if self.stats(rows).draws_parameters:
            samplers.append(StickBreakingGibbs())
        for sampler in samplers:
            passes, found = is_exact(
                model, sampler.make_kernel, n_sweeps=1500, seed=self.seed, doubt=DOUBT
            )
            assert passes, (
                f"{self.where}: {sampler!r} does not sample the posterior over "
                "partitions that follows from the predictive probabilities; it differs "
                f"by {found[-1].partitions.tv:.3g} in total variation (by chance "
                f"{found[-1].partitions.expected_tv:.3g}), p = {found[-1].pvalue:.2g}"
            )
