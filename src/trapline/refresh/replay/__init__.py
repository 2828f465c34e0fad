"""The replayer: it replays update traces against a policy and computes the measures of the papers."""
