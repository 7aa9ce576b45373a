"""Hidden Markov models whose number of states is not known in advance."""
