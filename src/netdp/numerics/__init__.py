"""What every room computes with: array types, checks of numbers, roots, binomial laws, sparse kernels, long integers."""
