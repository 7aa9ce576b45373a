"""Posterior summaries against direct formulas and all partitions of a few steps."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score, rand_score
from sklearn.utils._testing import ignore_warnings

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._fitting import fit as _fit
from skihmm._using.decoding import rank
from skihmm._using.partitions import Loss, Partitions, by_occupancy
from skihmm.emissions import HCRPCategorical, ProductEmission
from skihmm.posterior import (
    _estimate,
    _summaries,
    align,
    coassignment,
    draw_parameters,
    match_states,
    n_states_distribution,
    occupancy_bands,
    point_estimate,
)

LOSSES = ("vi", "binder")


# Its fit takes milliseconds.
make_model = partial(
    HCRPHMM, n_burnin=4, n_draws=6, thin=1, n_chains=2, n_particles=10, random_state=0
)


def all_partitions(n):
    """Every partition of n steps, states in the order in which they occur."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*path, k] for path in found for k in range(max(path) + 2)]
    return np.array(found)


def entropy(path):
    shares = np.unique(path, return_counts=True)[1] / len(path)
    return -np.sum(shares * np.log(shares))


def distance(loss, one, two):
    """The loss of two paths by its definition."""
    if loss == "binder":
        return 1 - rand_score(one, two)
    return entropy(one) + entropy(two) - 2 * mutual_info_score(one, two)


def expected_loss(loss, path, draws):
    return np.mean([distance(loss, path, draw) for draw in draws])


def distances(loss, ones, others):
    """Losses of many pairs of short paths, from the pairs of steps that are together."""
    ones, others = (
        (np.asarray(paths)[:, :, None] == np.asarray(paths)[:, None, :]).astype(float)
        for paths in (ones, others)
    )
    n = ones.shape[1]
    if loss == "binder":
        flat, other = ones.reshape(len(ones), -1), others.reshape(len(others), -1)
        apart = flat @ (1 - other).T + (1 - flat) @ other.T
        return apart / (n * (n - 1))
    common = np.einsum("pij,qij->pqi", ones, others)
    sizes = np.log(ones.sum(axis=2))[:, None] + np.log(others.sum(axis=2))[None]
    return (sizes - 2 * np.log(common)).mean(axis=2)


def shuffled(draws, rng):
    """The draws in another order, each under other labels."""
    return np.stack([rng.permutation(50)[draw] for draw in rng.permutation(draws)])


def noisy_draws(rng, n_draws, n_samples, n_states, noise):
    """Draws that agree on most steps."""
    draws = np.tile(rng.integers(n_states, size=n_samples), (n_draws, 1))
    wrong = rng.random(draws.shape) < noise
    draws[wrong] = rng.integers(n_states, size=wrong.sum())
    return draws


@pytest.fixture(scope="module")
def ragged(sequence):
    """Chains of 6 and of 3 draws."""
    model = make_model(n_draws=3).fit(sequence)
    chains = [chain.draws for chain in model._fit_state.chains]
    more = make_model(random_state=1, n_chains=1).fit(sequence)
    return PosteriorDraws([more._fit_state.chains[0].draws, chains[1]])


def paths_of(draws):
    return np.array([draws[c, d].states for c, n in enumerate(draws.n_draws) for d in range(n)])


# -- losses ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_both_definitions_agree(loss, rng):
    ones, others = rng.integers(4, size=(5, 8)), rng.integers(3, size=(6, 8))
    expected = [[distance(loss, one, other) for other in others] for one in ones]
    np.testing.assert_allclose(distances(loss, ones, others), expected, atol=1e-14)


# (scikit-learn 1.7 doubts that so many labels are classes.)
@ignore_warnings(category=UserWarning)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("chunk", [1, 100, 2**18])
@pytest.mark.parametrize("n_states", [2, 7, 60])
def test_losses_are_those_of_the_definitions(loss, chunk, n_states, rng, monkeypatch):
    # (60 states of 40 steps: tables that are nearly empty.)
    monkeypatch.setattr("skihmm._using.partitions._CHUNK", chunk)
    draws = rng.integers(n_states, size=(12, 40))
    draws[3:6] = draws[0]
    draws[:, 20:30] = draws[:, 10:20]
    partitions, measure = Partitions(draws), Loss(loss, 40)
    assert partitions.labels.shape[0] == 9
    assert partitions.labels.shape[1] <= 30
    expected = [expected_loss(loss, draw, draws) for draw in draws]
    found = measure.of_draws(partitions)[partitions.which]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    # A partition that is no draw.
    items = rng.integers(3, size=partitions.labels.shape[1]).astype(np.int32)
    np.testing.assert_allclose(
        measure.expected(items, partitions),
        expected_loss(loss, items[partitions.item], draws),
        rtol=1e-12,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_that_are_never_separated_belong_together(loss, rng):
    # What moving them together rests on, over all partitions of six steps.
    partitions = all_partitions(6)
    together = partitions[:, 1] == partitions[:, 4]
    for _ in range(10):
        draws = rng.integers(3, size=(6, 6))
        draws[:, 4] = draws[:, 1]
        losses = distances(loss, partitions, draws).mean(axis=1)
        assert losses[together].min() <= losses[~together].min() + 1e-12


# -- point estimates ------------------------------------------------------------------


@pytest.fixture(scope="module", params=[5, 6])
def small(request):
    """All partitions of a few steps, and the losses of all pairs."""
    partitions = all_partitions(request.param)
    assert len(partitions) == {5: 52, 6: 203}[request.param]
    return partitions, {loss: distances(loss, partitions, partitions) for loss in LOSSES}


@pytest.mark.parametrize("loss", LOSSES)
def test_smallest_loss_of_all_partitions_is_found(small, loss, rng):
    partitions, losses = small
    n_beyond = 0
    for repetition in range(60):
        # From any partition to a handful of them.
        concentration = [1.0, 0.05, 0.005][repetition % 3]
        weights = rng.dirichlet(np.full(len(partitions), concentration))
        chosen = rng.choice(len(partitions), size=[10, 50, 7][repetition % 3], p=weights)
        expected = losses[loss][:, chosen].mean(axis=1)
        draws = partitions[chosen]
        labels, found = point_estimate(draws, loss, return_loss=True)
        np.testing.assert_allclose(found, expected.min(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            distances(loss, [labels], draws).mean(), found, rtol=1e-9, atol=1e-12
        )
        best, of_best = point_estimate(draws, loss, search="draws", return_loss=True)
        np.testing.assert_allclose(of_best, expected[chosen].min(), rtol=1e-9, atol=1e-12)
        assert any(rand_score(best, draw) == 1 for draw in draws)
        n_beyond += found < of_best - 1e-9
    # Otherwise the draws alone would have passed.
    assert n_beyond >= 5


@pytest.mark.parametrize("loss", LOSSES)
def test_each_start_alone_goes_down(loss, rng, monkeypatch):
    draws = noisy_draws(rng, 20, 60, 4, 0.2)
    best = point_estimate(draws, loss, search="draws", return_loss=True)[1]
    truth = expected_loss(loss, draws[0], draws)
    for n_starts in (0, 1):
        labels, found = point_estimate(draws, loss, n_starts=n_starts, return_loss=True)
        assert found < best <= truth + 1e-12
        np.testing.assert_allclose(found, expected_loss(loss, labels, draws), rtol=1e-9)


def test_partitions_that_are_built_up_are_worth_it(rng):
    # Draws that agree on little: the best one is no good place to start from.
    losses = []
    for _ in range(10):
        draws = rng.integers(3, size=(10, 30))
        losses.append(
            [point_estimate(draws, "binder", n_starts=n, return_loss=True)[1] for n in (0, 8)]
        )
    alone, all_starts = np.transpose(losses)
    assert (all_starts <= alone).all()
    assert (all_starts < alone - 1e-9).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_every_move_lowers_the_loss(loss, rng):
    draws = noisy_draws(rng, 10, 40, 4, 0.3)
    partitions, measure = Partitions(draws), Loss(loss, 40)
    descent = _estimate.Descent(partitions, measure)
    n_items = len(partitions.sizes)
    moves = {
        "sweep": lambda: descent._sweep(rng.permutation(n_items)),
        "merge": descent._merge,
        "dissolve": lambda: descent._dissolve(rng),
    }
    for name, move in moves.items():
        n_moved = 0
        for n_states in (1, 3, 20):
            start = rng.integers(n_states, size=n_items).astype(np.int32)
            descent.start(start)
            before = measure.expected(descent.labels, partitions)
            has_moved = move()
            after = measure.expected(descent.labels, partitions)
            assert (after < before - 1e-12) == has_moved, name
            if not has_moved:
                np.testing.assert_allclose(after, before, rtol=1e-12)
            n_moved += has_moved
            # Its tables are those of the labels.
            tables, occupancy = descent._tables, descent._occupancy
            descent.start(descent.labels)
            np.testing.assert_array_equal(tables, descent._tables)
            np.testing.assert_array_equal(occupancy, descent._occupancy)
        assert n_moved > 0, name


@pytest.mark.parametrize("search", ["greedy", "draws"])
@pytest.mark.parametrize("loss", LOSSES)
def test_labels_and_order_of_draws_make_no_difference(loss, search, rng):
    draws = noisy_draws(rng, 15, 50, 5, 0.2)
    labels, found = point_estimate(draws, loss, search=search, return_loss=True)
    assert labels.dtype == np.int32
    occupancy = np.bincount(labels)
    assert (np.diff(occupancy) <= 0).all()
    assert occupancy.min() > 0
    for _ in range(3):
        other = shuffled(draws, rng)
        again, loss_again = point_estimate(other, loss, search=search, return_loss=True)
        assert again.tobytes() == labels.tobytes()
        assert loss_again == found
        np.testing.assert_array_equal(coassignment(other), coassignment(draws))
        for one, two in zip(
            (*n_states_distribution(other), *occupancy_bands(other)),
            (*n_states_distribution(draws), *occupancy_bands(draws)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, two)


def test_equal_draws_and_short_paths():
    for loss in LOSSES:
        labels, found = point_estimate([[3, 3, 1, 0]] * 4, loss, return_loss=True)
        assert labels.tolist() == [0, 0, 1, 2]
        assert found == 0
        labels, found = point_estimate([[4], [5]], loss, return_loss=True)
        assert labels.tolist() == [0]
        assert found == 0


def test_long_data_are_searched_among_the_draws(rng, monkeypatch):
    draws = noisy_draws(rng, 10, 60, 4, 0.2)
    n_items = len(Partitions(draws).sizes)
    results = {
        search: point_estimate(draws, search=search, return_loss=True)[1]
        for search in ("greedy", "draws")
    }
    assert results["greedy"] < results["draws"]
    for limit, search in ((n_items, "greedy"), (n_items - 1, "draws")):
        monkeypatch.setattr(_estimate, "MAX_ITEMS", limit)
        assert point_estimate(draws, return_loss=True)[1] == results[search]


def test_draws_of_long_data_are_compared_at_some_steps(rng, monkeypatch):
    draws = noisy_draws(rng, 10, 60, 4, 0.2)
    monkeypatch.setattr(_estimate, "MOST_COMPARED", 20)
    spaced = draws[:, ::3]
    for loss in LOSSES:
        _, smallest = point_estimate(spaced, loss, search="draws", return_loss=True)
        states, found = point_estimate(draws, loss, return_loss=True)
        assert found == smallest
        best = [expected_loss(loss, path, spaced) for path in spaced]
        np.testing.assert_array_equal(states, by_occupancy(draws[np.argmin(best)]))


# -- draws and arrays -----------------------------------------------------------------


def test_draws_and_arrays_give_the_same(ragged):
    assert ragged.n_draws.tolist() == [6, 3]
    paths = paths_of(ragged)
    assert paths.shape == (9, 60)
    np.testing.assert_array_equal(coassignment(ragged), coassignment(paths))
    np.testing.assert_array_equal(point_estimate(ragged), point_estimate(paths))
    np.testing.assert_array_equal(align(ragged), align(paths))
    values, probabilities = n_states_distribution(ragged)
    np.testing.assert_array_equal(values, n_states_distribution(paths)[0])
    np.testing.assert_array_equal(probabilities, n_states_distribution(paths)[1])
    np.testing.assert_array_equal(occupancy_bands(ragged), occupancy_bands(paths))


def test_draws_without_paths(sequence):
    draws = make_model(store_states=False).fit(sequence).draws_
    for function in (coassignment, point_estimate, occupancy_bands, align):
        with pytest.raises(ValueError, match="store_states=True"):
            function(draws)
    with_paths = make_model().fit(sequence).draws_
    for one, two in zip(
        n_states_distribution(draws), n_states_distribution(with_paths), strict=True
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "function", [coassignment, point_estimate, n_states_distribution, occupancy_bands, align]
)
@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ([0, 1, 2], r"shape \(3,\) and type int.*\(n_draws, n_samples\)"),
        (np.zeros((2, 3, 4), int), r"shape \(2, 3, 4\)"),
        ([[0.0, 1.0]], "type float64"),
        (np.zeros((0, 3), int), r"shape \(0, 3\)"),
        (np.zeros((3, 0), int), r"shape \(3, 0\)"),
        ([[0, 1], [-1, -1]], "negative labels"),
    ],
)
def test_what_are_no_draws(function, draws, message):
    with pytest.raises(ValueError, match=message):
        function(draws)


def test_bad_parameters():
    draws = [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="loss='VI'; expected one of 'vi', 'binder'"):
        point_estimate(draws, "VI")
    with pytest.raises(ValueError, match="search='all'; expected one of 'auto'"):
        point_estimate(draws, search="all")
    with pytest.raises(ValueError, match="n_starts=-1; expected an integer >= 0"):
        point_estimate(draws, n_starts=-1)
    with pytest.raises(TypeError, match="return_loss=1; expected True or False"):
        point_estimate(draws, return_loss=1)
    for bad in (0, 1, 1.5, -0.1):
        with pytest.raises(ValueError, match=f"probability={bad}"):
            occupancy_bands(draws, bad)
    for bad, message in (
        ([0, 2], "values from 0 to 2; expected indices of 2 steps"),
        ([-3], "values from -3"),
        ([], "list of indices"),
        ([[0]], "list of indices"),
        ([True, False], "type bool"),
    ):
        with pytest.raises(ValueError, match=message):
            coassignment(draws, bad)
    for bad in ([0.5, 1], [[0, 1]], [], [-1, 0]):
        with pytest.raises(ValueError, match="states has shape"):
            match_states([0, 1], bad)
        with pytest.raises(ValueError, match="reference has shape"):
            match_states(bad, [0, 1])
    with pytest.raises(ValueError, match="reference has 3 steps and states 2"):
        match_states([0, 1, 1], [0, 1])


# -- co-assignment --------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 100, 2**17])
@pytest.mark.parametrize("n_states", [3, 300, 70000])
def test_coassignment_is_the_share_of_draws(n_states, block, rng, monkeypatch):
    monkeypatch.setattr(_summaries, "_BLOCK", block)
    n_samples = 30 if n_states < 300 else 320
    draws = rng.integers(n_states, size=(7, n_samples))
    draws[4] = draws[2]
    draws[:, 9] = draws[:, 4]
    expected = np.mean([draw[:, None] == draw[None, :] for draw in draws], axis=0)
    found = coassignment(draws)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    steps = [5, 4, 9, 5, -1, 0]
    np.testing.assert_array_equal(coassignment(draws, steps), expected[np.ix_(steps, steps)])


def test_coassignment_of_long_data_needs_steps():
    draws = np.zeros((2, 5001), dtype=int)
    with pytest.raises(ValueError, match=r"all 5001 steps would take 0\.2 GB.*steps="):
        coassignment(draws)
    assert coassignment(draws, range(0, 5001, 1000)).tolist() == [[1.0] * 6] * 6
    assert coassignment(draws[:, 1:]).shape == (5000, 5000)


def test_binder_loss_follows_from_coassignment(rng):
    # Another way to the same expectation.
    draws = noisy_draws(rng, 12, 30, 4, 0.3)
    similarity = coassignment(draws)
    labels, found = point_estimate(draws, "binder", return_loss=True)
    together = labels[:, None] == labels[None, :]
    pairs = np.where(together, 1 - similarity, similarity)[np.triu_indices(30, 1)]
    np.testing.assert_allclose(found, pairs.mean(), rtol=1e-12)


# -- numbers of states and occupancies ------------------------------------------------


def test_numbers_of_states():
    draws = [[0, 0, 5], [1, 2, 3], [4, 4, 4], [7, 1, 1]]
    values, probabilities = n_states_distribution(draws)
    assert values.tolist() == [1, 2, 3]
    assert probabilities.tolist() == [0.25, 0.5, 0.25]


def test_bands_of_occupancies(rng):
    draws = rng.integers(6, size=(200, 25))
    draws[::3] %= 4
    counts = np.sort([np.bincount(draw, minlength=6) for draw in draws], axis=1)[:, ::-1]
    widths = []
    for probability in (0.5, 0.9, 0.999999):
        lower, median, upper = occupancy_bands(draws, probability)
        assert lower.shape == median.shape == upper.shape == (6,)
        inside = ((lower <= counts) & (counts <= upper)).mean(axis=0)
        assert (inside >= probability).all() or probability > 0.999
        tail = (1 - probability) / 2
        assert ((counts < lower).mean(axis=0) <= tail + 1e-9).all()
        assert ((counts > upper).mean(axis=0) <= tail + 1e-9).all()
        # Neither end can be moved inwards.
        assert ((counts <= lower).mean(axis=0) >= tail - 1e-9).all()
        assert ((counts >= upper).mean(axis=0) >= tail - 1e-9).all()
        np.testing.assert_array_equal(median, np.sort(counts, axis=0)[99])
        widths.append((upper - lower).sum())
    assert widths == sorted(widths)
    np.testing.assert_array_equal(lower, counts.min(axis=0))
    np.testing.assert_array_equal(upper, counts.max(axis=0))


# -- matching -------------------------------------------------------------------------


def test_matching_has_the_largest_overlap(rng):
    for _ in range(20):
        reference = rng.integers(4, size=15)
        states = rng.integers(rng.integers(1, 6), size=15)
        matched = match_states(reference, states)
        assert matched.dtype == np.int32
        assert rand_score(matched, states) == 1
        names = np.unique(states)
        # New labels, one for each state, may be what any state gets.
        candidates = itertools.permutations(range(4 + len(names)), len(names))
        lookup = np.searchsorted(names, states)
        best = max(np.sum(np.array(c)[lookup] == reference) for c in candidates)
        assert np.sum(matched == reference) == best
        renamed = rng.permutation(9)[states]
        np.testing.assert_array_equal(match_states(reference, renamed), matched)


def test_states_without_a_partner():
    # 7 is larger than 3, and gets the first new label; 9 is taken.
    reference = [2, 2, 2, 2, 2, 2, 9, 9]
    states = [5, 5, 5, 7, 7, 3, 4, 4]
    assert match_states(reference, states).tolist() == [2, 2, 2, 10, 10, 11, 9, 9]
    # One that would be paired with a state that it never meets.
    assert match_states([0, 0, 0, 1], [6, 6, 8, 6]).tolist() == [0, 0, 2, 0]


def test_align(ragged, rng):
    paths = paths_of(ragged)
    reference = point_estimate(ragged)
    aligned = align(ragged)
    assert aligned.shape == paths.shape
    for path, draw in zip(aligned, paths, strict=True):
        np.testing.assert_array_equal(path, match_states(reference, draw))
    draws = np.stack([rng.permutation(5)[paths[0] % 5] for _ in range(4)])
    np.testing.assert_array_equal(
        align(draws, reference=paths[0] % 5), np.tile(paths[0] % 5, (4, 1))
    )


# -- the estimator --------------------------------------------------------------------


def selected_by_hand(loss, draws):
    """Chain and draw of the smallest loss; the most probable among equal ones."""
    lp = draws.summed_lp()
    index = [(c, d) for c, n in enumerate(draws.n_draws) for d in range(n)]
    paths = paths_of(draws)
    losses = [round(expected_loss(loss, path, paths), 12) for path in paths]
    return min(zip(losses, [-lp[i] for i in index], index, strict=True))[2]


@pytest.mark.parametrize("loss", LOSSES)
def test_selected_draw(loss):
    # Data that say little, so that draws differ.
    sequence = np.random.default_rng(0).integers(4, size=(60, 1))
    params = {"n_burnin": 20, "n_draws": 20, "random_state": 15}
    by_rank = make_model(point_estimate="map", **params).fit(sequence)
    recipes = by_rank._fitted.sequences, by_rank.emission_, by_rank.transitions_
    index = [(c, d) for c, n in enumerate(by_rank.draws_.n_draws) for d in range(n)]
    assert by_rank._fitted.best == max(index, key=lambda i: rank(by_rank.draws_[i], *recipes))
    np.testing.assert_array_equal(by_rank.labels_, by_rank._fitted.selected.states)
    model = make_model(point_estimate=loss, **params).fit(sequence)
    # The chain is the same one.
    np.testing.assert_array_equal(model.draws_.lp, by_rank.draws_.lp)
    assert model._fitted.best == selected_by_hand(loss, model.draws_)
    assert model._fitted.best != by_rank._fitted.best, "choose another seed"
    draw = model.draws_[model._fitted.best]
    assert model.labels_.dtype == by_rank.labels_.dtype == np.int32
    np.testing.assert_array_equal(model.labels_, draw.states)
    assert model.n_states_ == draw.n_states == model.labels_.max() + 1
    assert model.transmat_.shape == (model.n_states_ + 1,) * 2
    assert model.predict_proba(sequence).shape == (60, model.n_states_ + 1)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(sequence), model.predict(sequence))


@pytest.mark.parametrize("loss", LOSSES)
def test_ties_go_to_the_most_probable(loss, ragged):
    assert _estimate.best_draw(ragged, loss) == selected_by_hand(loss, ragged)
    # Two draws both have the same expected loss.
    chain = ragged._chains[0]
    for pair in itertools.combinations(chain, 2):
        two = PosteriorDraws([pair])
        assert _estimate.best_draw(two, loss) == two.argmax()


@pytest.mark.parametrize("loss", LOSSES)
def test_ties_that_rounding_hides(loss, ragged, rng):
    # By symmetry all rotations of a path have the same expected loss.
    path = np.array([0, 0, 0, 1, 1, 2, 3, 3, 0, 2, 2])
    draw = ragged._chains[0][0]
    for best in range(11):
        lp = -rng.random(11)
        lp[best] = 1
        chain = [replace(draw, states=np.roll(path, d), lp=lp[d]) for d in range(11)]
        assert _estimate.best_draw(PosteriorDraws([chain]), loss) == (0, best)


def test_point_estimates_need_paths(sequence, monkeypatch):
    earlier = make_model(store_states=False).fit(sequence)
    labels = earlier.labels_

    def forbidden(*args, **kwargs):
        raise AssertionError("work had begun")

    monkeypatch.setattr(_fit, "run_chain", forbidden)
    model = make_model(store_states=False, point_estimate="binder")
    with pytest.raises(ValueError, match=r"'binder' compares.*Set store_states=True"):
        model.fit(sequence)
    earlier.set_params(store_states=True, point_estimate="binder", warm_start=True)
    with pytest.raises(ValueError, match=r"the earlier fit.*store_states=False"):
        earlier.fit(sequence)
    assert earlier.labels_ is labels


def test_point_estimate_is_no_part_of_what_a_run_is(sequence, tmp_path):
    whole = make_model().fit(sequence)
    assert whole.point_estimate == "vi"
    by_rank = {"n_draws": 3, "point_estimate": "map"}
    make_model(**by_rank, checkpoint=tmp_path / "run").fit(sequence)
    resumed = make_model(checkpoint=tmp_path / "run").fit(sequence)
    continued = make_model(**by_rank, warm_start=True).fit(sequence)
    continued.set_params(point_estimate="vi").fit(sequence)
    for model in (resumed, continued):
        np.testing.assert_array_equal(model.draws_.lp, whole.draws_.lp)
        assert model._fitted.best == whole._fitted.best
        np.testing.assert_array_equal(model.labels_, whole.labels_)
        np.testing.assert_array_equal(model.transmat_, whole.transmat_)


@ignore_warnings(category=UserWarning)
def test_point_estimate_of_a_fit_that_was_stopped(sequence):
    # One chain has its last state only.
    def callback(report):
        return report.chain == 1 and report.sweep == 2

    model = make_model(point_estimate="binder", callback=callback).fit(sequence)
    assert model.draws_.n_draws.tolist() == [6, 1]
    assert model._fitted.best == selected_by_hand("binder", model.draws_)


@pytest.mark.parametrize("store_states", [True, False])
def test_parameters_of_the_selected_draw(sequence, store_states):
    model = make_model(store_states=store_states).fit(sequence)
    found = draw_parameters(model)
    np.testing.assert_array_equal(found.startprob_, model.startprob_)
    np.testing.assert_array_equal(found.transmat_, model.transmat_)
    (probs,) = found.emissionprob_
    assert probs.shape == (model.n_states_ + 1, len(model.emission_.categories_[0]) + 1)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    if store_states:
        np.testing.assert_array_equal(found.states, model.labels_)
        # The predictive probabilities of the next step are made of these.
        last = model.predict_proba(sequence)[-1] @ found.transmat_ @ probs
        only = PosteriorDraws([[model.draws_[model._fitted.best]]], None)
        model._fitted = replace(model._fitted, draws=only, best=(0, 0))
        expected = model.predict_next(sequence).proba()[0]
        np.testing.assert_allclose(last, expected, rtol=1e-10)
    else:
        assert found.states is None


def test_parameters_without_a_context(sequence):
    pytest.importorskip("matplotlib")
    from skihmm.inspection._emissions import column_predictives

    X = np.column_stack([sequence, np.arange(len(sequence)) % 2])
    emission = HCRPCategorical(context_features=[1])
    model = make_model(emission=emission).fit(X)
    (probs,) = draw_parameters(model).emissionprob_
    (column,) = column_predictives(model._fitted, 0.9, 0)
    np.testing.assert_array_equal(probs, column.probabilities)


def test_parameters_in_the_order_of_the_columns(sequence):
    X = np.column_stack([np.arange(len(sequence)) % 3, sequence, sequence])
    parts = [("b", "hcrp", [1]), ("n", "poisson", [2]), ("a", "dirichlet", [0])]
    model = make_model(emission=ProductEmission(parts)).fit(X)
    first, second = draw_parameters(model).emissionprob_
    occurs = [[(X[:, c] == v).mean() for v in np.unique(X[:, c])] for c in range(2)]
    shares = np.bincount(model.labels_) / len(X)
    for probs, share in zip((first, second), occurs, strict=True):
        assert probs.shape[1] == len(share) + 1
        np.testing.assert_allclose(shares @ probs[:-1, :-1], share, atol=0.1)


def test_parameters_of_every_draw():
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([0, 20, 0], 15)[:, None], size=(45, 2))
    model = make_model(emission="gaussian").fit(X)
    for c, d in itertools.product(range(2), range(6)):
        found, draw = draw_parameters(model, (c, d)), model.draws_[c, d]
        assert found.emissionprob_ == []
        assert found.transmat_.shape == (draw.n_states + 1,) * 2
        means = found.emission_.means_[found.states]
        for k in range(draw.n_states):
            # Shrunk from the mean of its steps to the prior mean.
            own = X[draw.states == k].mean(axis=0) - X.mean(axis=0)
            shrunk = (means[draw.states == k][0] - X.mean(axis=0)) / own
            assert (np.abs(shrunk - 1) < 0.5).all()
    np.testing.assert_array_equal(
        draw_parameters(model, model._fitted.best).emission_.means_, model.emission_.means_
    )
    with pytest.raises(IndexError, match=r"draws\[2, 0\]"):
        draw_parameters(model, (2, 0))
