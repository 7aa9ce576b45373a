"""Infinite hidden Markov models (HDP-HMM).

The estimator is :class:`HCRPHMM`; samplers, emissions, metrics, data sets, summaries of
the posterior and displays are in the modules `samplers`, `emissions`, `metrics`,
`datasets`, `posterior` and `inspection`.
"""

import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import platform

from skihmm._hcrp_hmm import HCRPHMM
from skihmm._using.online import OnlineFilter
from skihmm._version import __version__

__all__ = [
    "HCRPHMM",
    "OnlineFilter",
    "__version__",
    "get_include",
    "show_versions",
]


# A folder's headers include headers of folders before it.
_HEADERS = (
    "core",
    "core/restaurants",
    "core/transitions",
    "core/chain",
    "core/frozen",
    "emissions/families/laws",
    "emissions/families/hidden",
    "emissions/families/linear",
    "emissions/families",
    "emissions",
    "emissions/symbols",
    "samplers/steps",
    "samplers/blocks",
    "samplers/split_merge",
    "samplers/drawn",
)


def get_include() -> list[str]:
    """List the folders of the C++ headers, for packages that extend the compiled core.

    Returns
    -------
    folders : list of str
        Folders of all headers that ``skihmm``'s ``.pxd`` files include.

    See Also
    --------
    skihmm.emissions.CustomEmission : Base class of emissions in C++.
    skihmm.samplers.BaseSampler : Base class of samplers.

    Examples
    --------
    >>> import skihmm
    >>> [folder.rpartition("skihmm")[2] for folder in skihmm.get_include()[:3]]
    ['/core', '/core/restaurants', '/core/transitions']
    """
    here = Path(__file__).parent
    return [str(here / folder) for folder in _HEADERS]


def show_versions() -> None:
    """Print versions of the system and of packages, for reports of errors.

    See Also
    --------
    HCRPHMM.diagnose : Check a fit before a report.

    Examples
    --------
    >>> import skihmm
    >>> skihmm.show_versions()  # doctest: +ELLIPSIS
    skihmm ..., Python 3...
    """
    print(f"skihmm {__version__}, Python {sys.version}, {platform()}")
    names = "numpy scipy scikit-learn joblib threadpoolctl pandas polars matplotlib arviz"
    for name in names.split():
        with suppress(PackageNotFoundError):
            print(f"{name} {version(name)}")
