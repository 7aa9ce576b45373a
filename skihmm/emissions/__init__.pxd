# The public native interface: `from skihmm.emissions cimport ConjugateStats`.
from skihmm.emissions._conjugate_stats cimport ConjugateStats
