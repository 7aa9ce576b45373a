"""Motion capture of exercises, with annotated actions."""

import io
import os
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skihmm._data.validation import check_flag
from skihmm.datasets._files import RemoteFile

__all__ = ["fetch_mocap6"]

_URL = "https://raw.githubusercontent.com/bnpy/bnpy/master/bnpy/datasets/mocap6/dataset.npz"
_FEATURES = 12


def _read(raw: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Data, actions and lengths of the sequences, from either of two file formats."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        if "doc_range" in file:
            names = "X", "TrueZ", "doc_range"
            ends = file["doc_range"][1:]
        else:
            names = "X", "labels", "ends"
            ends = file["ends"]
        X, labels = np.asarray(file[names[0]], np.float64), file[names[1]]
    if X.ndim != 2 or X.shape[1] != _FEATURES or labels.shape != X.shape[:1]:
        raise ValueError(f"arrays of the shapes {X.shape} and {labels.shape}")
    if len(ends) == 0 or ends[-1] != len(X) or not (np.diff(ends, prepend=0) > 0).all():
        raise ValueError(f"sequences that end at {ends.tolist()} of {len(X)} rows")
    actions = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return X, actions, np.diff(ends, prepend=0).astype(np.int64)


def _problem_of(raw: bytes) -> str | None:
    try:
        _read(raw)
    # NumPy raises many kinds of errors for files that are none of its own.
    except Exception as error:
        return f"what is not the data set ({error})"
    return None


_FILE = RemoteFile(
    what="the motion capture data",
    url=_URL,
    name=os.path.join("mocap6", "mocap6.npz"),
    check=_problem_of,
)


def fetch_mocap6(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Load motion capture of six exercise routines with their annotated actions.

    Twelve joint angles of two persons, ten times a second [1]_. The file is read if it is
    there, otherwise downloaded from the repository of bnpy [2]_ and stored.

    =================   =============================================
    Samples             2058, in 6 sequences
    Features            12 (joint angles, degrees, mean zero)
    Classes             12 (actions)
    =================   =============================================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the file ``mocap6/mocap6.npz``. The file is looked for there, then in
        the folder named by the environment variable ``SKIHMM_DATA``, then in
        scikit-learn's data folder (:func:`sklearn.datasets.get_data_home`). A download is
        stored in `data_home`, or in scikit-learn's data folder if this is None.
    download_if_missing : bool, default=True
        If False, raise an OSError if there is no file instead of downloading it.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    mocap6 : :class:`~sklearn.utils.Bunch`
        With the attributes

        data : ndarray of shape (2058, 12), dtype float64
            The joint angles.
        target : ndarray of shape (2058,), dtype int64
            The action of every sample, 0 to 11.
        groups : ndarray of shape (2058,), dtype int64
            The sequence of every sample, 0 to 5, for ``fit(X, groups=...)``.
        feature_names : list of str
            ``["angle0", ..., "angle11"]``.
        DESCR : str
            The description of the data.

    (data, target) : tuple
        Only if `return_X_y=True`.

    Raises
    ------
    OSError
        If there is no file and `download_if_missing` is False, or the download fails.
    ValueError
        If the file does not hold the data set.

    See Also
    --------
    fetch_alice : A sequence of symbols.
    skihmm.emissions.AutoregressiveNormal : Emission of numbers that follow earlier rows.

    References
    ----------
    .. [1] E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, "Joint Modeling of
       Multiple Time Series via the Beta Process with Application to Motion Capture
       Segmentation", Annals of Applied Statistics 8, 2014. The data come from
       mocap.cs.cmu.edu, created with funding from NSF EIA-0196217.
    .. [2] https://github.com/bnpy/bnpy

    Examples
    --------
    >>> from skihmm.datasets import fetch_mocap6
    >>> mocap6 = fetch_mocap6()  # doctest: +SKIP
    >>> mocap6.data.shape  # doctest: +SKIP
    (2058, 12)
    """
    check_flag("download_if_missing", download_if_missing)
    check_flag("return_X_y", return_X_y)
    path = _FILE.find(data_home, download_if_missing)
    raw = path.read_bytes()
    problem = _problem_of(raw)
    if problem is not None:
        raise ValueError(
            f"{path} is {problem}. Replace the file, or delete it to have the data downloaded."
        )
    X, actions, lengths = _read(raw)
    if return_X_y:
        return X, actions
    description = resources.files("skihmm.datasets") / "descr" / "mocap6.rst"
    return Bunch(
        data=X,
        target=actions,
        groups=np.repeat(np.arange(len(lengths)), lengths),
        feature_names=[f"angle{i}" for i in range(_FEATURES)],
        DESCR=description.read_text(encoding="utf-8"),
    )
