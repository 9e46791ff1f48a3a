"""The experiments of the papers, redone: one file per figure or group of figures."""
