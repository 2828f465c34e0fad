"""The parts that strategies share: the types that a strategy declares, the registry that finds
strategies, the choice of one by options, and the inputs of page ranks."""
