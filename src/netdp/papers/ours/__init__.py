"""Our own figures: what the protocols of this project achieve, beside local DP and a trusted curator."""
