# The public native interface: `from skihmm.emissions cimport family_stats`.
from skihmm.emissions._conjugate_stats cimport family_stats
