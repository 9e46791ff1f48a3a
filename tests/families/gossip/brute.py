"""The loss by exact rational arithmetic, written independently of the package: messages as vectors of fractions."""

from fractions import Fraction


def exact_factors(neighbours, rounds, observers, *, refresh=0, masks=0, gamma=None):
    """factor_u for every honest u of gossip with Metropolis weights; σ = Δ = 1.

    `neighbours` is a list of sets. Every message is a linear form over x_u, own noises, masks and fresh noises; the forms
    of what the observers know are struck out, the covariance of the rest is formed in fractions, and Cov·p = a_u is
    solved by elimination: factor = pᵀa_u. Raises if a_u is not in the range (infinite loss).
    """
    n = len(neighbours)
    variance, known, column = [], [], {}

    def new(key, var, owners):
        column[key] = len(variance)
        variance.append(Fraction(var))
        known.append(bool(set(owners) & set(observers)))

    for u in range(n):
        new(("x", u), 0, (u,))
        new(("own", u), 1, (u,))
        for w in neighbours[u]:
            if masks and u < w:
                new(("mask", u, w), masks, (u, w))
        for t in range(1, rounds):
            if refresh:
                new(("fresh", u, t), Fraction(refresh) / rounds, (u,))
    width = len(variance)

    def form(**_):
        return [Fraction(0)] * width

    state = []
    for u in range(n):
        row = form()
        row[column["x", u]] = row[column["own", u]] = Fraction(1)
        for w in neighbours[u]:
            if masks:
                row[column["mask", min(u, w), max(u, w)]] = Fraction(1 if u < w else -1)
        state.append(row)
    weight = [
        {w: Fraction(1, 1 + max(len(neighbours[u]), len(neighbours[w]))) for w in neighbours[u]} for u in range(n)
    ]
    remembered, messages = state, []
    for t in range(rounds):
        if t and refresh:
            state, remembered = [row[:] for row in state], [row[:] for row in remembered]
            for u in range(n):
                state[u][column["fresh", u, t]] += 1
                remembered[u][column["fresh", u, t]] += 1
        messages += [state[w] for v in observers for w in sorted(neighbours[v])]
        mixed = []
        for u in range(n):
            keep = 1 - sum(weight[u].values())
            row = [keep * c for c in state[u]]
            for w, share in weight[u].items():
                row = [a + share * b for a, b in zip(row, state[w], strict=True)]
            if gamma is not None and t:
                row = [Fraction(gamma) * a + (1 - Fraction(gamma)) * b for a, b in zip(row, remembered[u], strict=True)]
            mixed.append(row)
        state, remembered = mixed, state
    noise = [i for i in range(width) if variance[i] and not known[i]]
    covariance = [[sum(a[i] * b[i] * variance[i] for i in noise) for b in messages] for a in messages]
    honest = [u for u in range(n) if u not in observers]
    shifts = [[message[column["x", u]] for message in messages] for u in honest]
    return dict(zip(honest, _quadratic_forms(covariance, shifts), strict=True))


def _quadratic_forms(matrix, vectors):
    """vᵀ M⁺ v for each v, by elimination on [M | vectors]."""
    size = len(matrix)
    rows = [list(matrix[i]) + [v[i] for v in vectors] for i in range(size)]
    pivots, top = [], 0
    for column in range(size):
        pivot = next((i for i in range(top, size) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[top], rows[pivot] = rows[pivot], rows[top]
        inverse = 1 / rows[top][column]
        rows[top] = [c * inverse for c in rows[top]]
        for i in range(size):
            if i != top and rows[i][column]:
                times = rows[i][column]
                rows[i] = [a - times * b for a, b in zip(rows[i], rows[top], strict=True)]
        pivots.append(column)
        top += 1
    results = []
    for k, vector in enumerate(vectors):
        if any(rows[i][size + k] for i in range(top, size)):
            raise ZeroDivisionError("infinite loss")
        results.append(sum(vector[column] * rows[i][size + k] for i, column in enumerate(pivots)))
    return results
