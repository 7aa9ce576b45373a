from skihmm.core._emission cimport EmissionStats
from skihmm.core._family cimport Family


# Statistics of a family, whose ownership they take, over rows of values, of which NaN is missing,
# and inputs.
cdef EmissionStats family_stats(Family *family, object rows)
