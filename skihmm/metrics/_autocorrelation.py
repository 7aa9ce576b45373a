"""Autocorrelation time of a chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft
from sklearn.utils.validation import check_array

from skihmm._data.validation import check_integer
from skihmm._typing import Floats

# Sokal's window ends at the first lag beyond this multiple of the estimated time.
_WINDOW = 10


def autocovariances(values: Floats) -> Floats:
    """Autocovariance at lags 0, 1, ... along the last axis, all divided by the same n."""
    n = values.shape[-1]
    centred = values - values.mean(axis=-1, keepdims=True)
    length = fft.next_fast_len(2 * n, real=True)
    spectrum = fft.rfft(centred, length)
    power = spectrum.real**2 + spectrum.imag**2
    return fft.irfft(power, length)[..., :n] / n


def _autocorrelations(values: Floats) -> Floats:
    """Autocorrelation at lags 1, 2, ...; both moments are divided by the same n."""
    n = len(values)
    covariances = autocovariances(values)[1:]
    # (n - t) in place of n corrects for the fewer pairs at longer lags.
    return covariances * n / (n - np.arange(1, n)) / np.var(values)


def autocorrelation_time(values: ArrayLike, max_lag: int | str = 1000) -> float:
    """Integrated autocorrelation time of one chain, in draws.

    1/2 plus the sum of the autocorrelations.  The effective number of `n` draws is
    ``n / (2 * autocorrelation_time)``: white noise gives 1/2.

    Parameters
    ----------
    values : array-like of shape (n_draws,)
        One value per draw, in the order of the chain, which should not depend on the
        labels of the states (``draws_.lp[c]`` or ``draws_.n_states[c]``).
    max_lag : int or "auto", default=1000
        Number of lags.  arXiv 1106.0474 uses 1000.  With only some thousand draws, their
        noise adds up.  "auto" is less noisy: it stops at the first lag of at least 10
        times the estimate so far (Sokal's window, at least 5 lags).

    Returns
    -------
    time : float
        NaN if all values are equal, or if there are fewer than three.

    See Also
    --------
    integrated_autocorr_time : Time from several chains.
    skihmm.inspection.TraceDisplay : Draw the traces of chains.

    References
    ----------
    A. D. Sokal, "Monte Carlo Methods in Statistical Mechanics: Foundations and New
    Algorithms", 1996.

    T. Makino, S. Takei, I. Sato and D. Mochihashi, arXiv 1106.0474, 2011, Section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.metrics import autocorrelation_time
    >>> noise = np.random.default_rng(0).normal(size=100_000)
    >>> round(autocorrelation_time(noise, max_lag="auto"), 1)
    0.5
    """
    checked: Floats = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name="values", ensure_min_samples=0
    )
    if checked.ndim != 1:
        raise ValueError(
            f"values has shape {checked.shape}; expected (n_draws,): one chain at a time."
        )
    if max_lag != "auto":
        if isinstance(max_lag, str):
            raise ValueError(f"max_lag={max_lag!r}; expected an integer >= 1 or 'auto'.")
        max_lag = check_integer("max_lag", max_lag, 1)
    if len(checked) < 3 or np.ptp(checked) == 0:
        return float("nan")
    times = 0.5 + np.cumsum(_autocorrelations(checked))
    if isinstance(max_lag, str):
        # In alternating chains the sum is at first below white noise's.
        beyond = np.arange(1, len(times) + 1) >= _WINDOW * np.maximum(times, 0.5)
        return float(times[np.argmax(beyond)] if beyond.any() else times[-1])
    return float(times[min(max_lag, len(times)) - 1])
