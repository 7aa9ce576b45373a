"""Live rows: rows per second, memory and false alarms: `python benchmarks/live.py`."""

import time
import tracemalloc

import numpy as np

from skihmm import HCRPHMM, OnlineFilter

N_ALARMS, LEVEL = 400_000, 1e-3


def rate(call, n_rows, n_rounds=5):
    """Rows per CPU second, the best of some rounds."""
    seconds = []
    for _ in range(n_rounds):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return n_rows / min(seconds)


def main():
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 5, 100), 20)[:, None]
    data = {
        "gaussian": rng.normal(8.0 * states),
        "poisson": rng.poisson(30.0 * states + 1).astype(float),
        "hcrp": states.astype(float),
        "autoregressive": rng.normal(8.0 * states),
    }
    print("emission, states, rows/s: a call for each, one call; false alarms/level, +- sd")
    for emission, X in data.items():
        settings = {"n_burnin": 50, "n_draws": 5, "random_state": 0}
        hmm = HCRPHMM(emission=emission, **settings).fit(X)
        live = OnlineFilter(hmm, group=0, level=LEVEL, random_state=1)
        following = live.predict_next(N_ALARMS if emission != "autoregressive" else 40_000)
        rows = following.sample(1, random_state=2)[0]
        share = live.copy().update(rows).is_alarm.mean() / LEVEL
        single = [X[i : i + 1] for i in range(2000)]
        many = np.tile(X, (10, 1))
        each = rate(lambda: [live.update(row) for row in single], 2000)  # noqa: B023
        whole = rate(lambda: live.update(many), len(many))  # noqa: B023
        sd = (LEVEL * len(rows)) ** -0.5
        rates = f"{each:8.0f} {whole:9.0f}"
        print(f"{emission:15s} {hmm.n_states_} {rates} {share:.2f} {sd:.2f}")
    tracemalloc.start()
    many = np.tile(data["gaussian"], (10, 1))
    live = OnlineFilter(HCRPHMM(emission="gaussian", **settings).fit(data["gaussian"]))
    for n in (1, 50):
        for _ in range(n):
            live.update(many)
        print(f"{live.n_rows} rows: {tracemalloc.get_traced_memory()[0] / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
