"""Displays of fitted models and of posterior draws, by matplotlib.

Each display has class methods that compute and plot, as in scikit-learn, and a method
:meth:`plot` that plots again.
"""

from skihmm.inspection._dwell_times import DwellTimeDisplay
from skihmm.inspection._emissions import EmissionDisplay
from skihmm.inspection._forecast import ForecastDisplay
from skihmm.inspection._regimes import RegimeTreeDisplay
from skihmm.inspection._regressions import RegressionDisplay
from skihmm.inspection._residuals import ResidualDisplay
from skihmm.inspection._states import StateSequenceDisplay
from skihmm.inspection._subjects import SubjectDisplay
from skihmm.inspection._trace import TraceDisplay
from skihmm.inspection._transitions import TransitionMatrixDisplay

__all__ = [
    "DwellTimeDisplay",
    "EmissionDisplay",
    "ForecastDisplay",
    "RegimeTreeDisplay",
    "RegressionDisplay",
    "ResidualDisplay",
    "StateSequenceDisplay",
    "SubjectDisplay",
    "TraceDisplay",
    "TransitionMatrixDisplay",
]
