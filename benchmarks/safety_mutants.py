"""Which safety lines a test would miss: `python benchmarks/safety_mutants.py`, or with `--only NAME`, `--family token`, `--quick`.

Every line that adds something on the safe side (a margin, a unit of rounding, a tail, a headroom) is weakened in turn in a
copy of the sources, and the tests that should notice are run on that copy. A mutant is *killed* if one of them fails; one
that survives stands for a margin that could be lost without anybody noticing, and asks for a formula pin (the printed
expression, evaluated anew in a test), or for a word why it changes nothing that can be seen; else the run ends with an
error. The working tree is never touched.

A mutant is named by a piece of source that occurs once in all of `src`, its tests by the names of their files or functions:
both are searched for, so that modules and tests may move; what is not found is lost, and says so. Tests are first run on the
sources as they are, once: a mutant is not killed by a test that fails anyway. A minute for a family, some ten for all.
"""

# ruff: noqa: E501 (pieces of source are as long as they are)

from __future__ import annotations

import argparse
import importlib
import os
import py_compile
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300.0
"""A mutant that makes tests take longer than this counts as killed: they would not end."""


class Mutant(NamedTuple):
    """A line of the sources and what it becomes; the tests that should fail then."""

    name: str
    family: str
    fragment: str
    replacement: str
    tests: str
    """Names of test files (without .py) or of test functions, separated by blanks."""
    why_it_lives: str = ""
    """For one that no test can kill: why it changes nothing that can be seen."""


class Fate(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    word: str
    by: str
    seconds: float


# fmt: off
MUTANTS = (
    # ── masked sums ──
    Mutant("releases-variance", "masked", "(r.total - around[r][0])", "r.total", "test_the_bound_is_the_one_that_is_printed"),
    Mutant("releases-further", "masked", "apart + further, epsilon", "apart, epsilon", "test_the_bound_is_the_one_that_is_printed"),
    Mutant("sampled-variance", "masked", "math.sqrt(release.total - around)", "math.sqrt(release.total)", "test_the_margins_of_sampled_sums_are_those_that_are_printed"),
    Mutant("sampled-drawn", "masked", "* (1 + 1e-12) + drawn", "* (1 + 1e-12)", "test_the_margins_of_sampled_sums_are_those_that_are_printed"),
    Mutant("releases-sums-apart", "masked", "return math.fsum(parts) * (1 + 1e-12)", "return 0.0", "test_the_bound_is_the_one_that_is_printed"),
    Mutant("releases-as-one", "masked", "apart = times * apart + sum_distance(release.total, times)", "apart = times * apart", "test_the_same_shift_several_times_counts_as_one_larger_release"),
    Mutant("releases-dimension", "masked", "return together, release.dimension * apart", "return together, apart", "test_vectors_of_coarse_shares_cost_as_printed"),
    Mutant("sampled-apart", "masked", "apart = times * release.dimension * sum_distance(", "apart = release.dimension * sum_distance(", "test_the_margins_of_sampled_sums_are_those_that_are_printed"),
    Mutant("sampled-replaced", "masked", "release._replace(distance=2 * release.distance) if both else release", "release", "test_its_ends"),
    Mutant("sum-cut", "masked", "_guarantee(protocol, with_missed(curve, missed), factor)", "_guarantee(protocol, curve, factor)", "test_a_coalition_fixed_before_the_draw_faces_everybody_else"),
    Mutant("descent-cut", "masked", "curve = with_missed(curve, missed)", "curve = with_missed(curve, 0.0)", "test_random_masks_add_the_probability_of_a_cut"),
    Mutant("cut-margin", "masked", "margin = (13 * rings + 3) * error + 1e-9", "margin = 0.0", "test_the_bound_is_above_the_truth_and_not_far"),
    Mutant("cut-ties", "masked", "ties = rings * n * n * 2.0**-129", "ties = 0.0", "test_ties_of_rings_are_counted"),
    Mutant("cut-terms", "masked", "terms = np.log(high) + 20 * error * high", "terms = np.zeros(len(s))", "test_large_sets_are_bounded_not_summed"),
    Mutant("share-up", "masked", "math.ceil(Fraction(self.sigma / self.step) ** 2)", "math.floor(Fraction(self.sigma / self.step) ** 2)", "test_shares_and_distances_are_rounded_up"),
    Mutant("sum-moved", "masked", "(self.sensitivity * (1 + SLACK) / self.step + moved)", "(self.sensitivity * (1 + SLACK) / self.step)", "test_shares_and_distances_are_rounded_up"),
    Mutant("sum-reach", "masked", "math.ceil(furthest * (1 + SLACK) / self.step) + 1", "math.ceil(furthest * (1 + SLACK) / self.step)", "test_shares_and_distances_are_rounded_up"),
    Mutant("descent-moved", "masked", "(self.clip * (1 + SLACK) / step + math.sqrt(self.dimension) / 2)", "(self.clip * (1 + SLACK) / step)", "test_shares_and_distances_are_rounded_up"),
    Mutant("grid-slack", "masked", "SLACK = 2e-9", "SLACK = 0.0", "test_shares_and_distances_are_rounded_up"),
    Mutant("grid-moved", "masked", "(sensitivity * (1 + SLACK) / grid + math.sqrt(dimension))", "(sensitivity * (1 + SLACK) / grid)", "test_shares_and_distances_are_rounded_up"),
    Mutant("grid-variance", "masked", "return math.ceil(variance / Fraction(grid) ** 2)", "return math.floor(variance / Fraction(grid) ** 2)", "test_shares_and_distances_are_rounded_up"),
    Mutant("grid-distance", "masked", "return math.ceil(Fraction(sensitivity) / Fraction(grid))", "return math.floor(Fraction(sensitivity) / Fraction(grid))", "test_shares_and_distances_are_rounded_up"),
    # ── gossip ──
    Mutant("exchanges-weight", "gossip", "or course.weight > 2:", "or course.weight > 4:", "test_states_that_late_answers_let_grow_are_refused"),
    Mutant("exchanges-absorbed", "gossip", "math.sqrt(d * course.squares / (2 * math.pi * fresh))", "math.sqrt(d * course.squares / (4 * math.pi * fresh))", "test_the_distance_is_the_one_that_is_printed"),
    Mutant("exchanges-drawn", "gossip", "drawn = d / 24 * ((course", "drawn = d / 48 * ((course", "test_the_distance_is_the_one_that_is_printed"),
    Mutant("exchanges-lost", "gossip", "math.exp(-(2.0**121) / variance)", "math.exp(-(2.0**122) / variance)", "test_the_distance_is_the_one_that_is_printed"),
    Mutant("exchanges-late", "gossip", "(1 + since.get(p, 0)) ** 2", "1", "test_the_distance_is_the_one_that_is_printed"),
    Mutant("exchanges-variance", "gossip", "variance = course.weight**2 * (start", "variance = (start", "test_the_distance_is_the_one_that_is_printed"),
    Mutant("exchanges-growth", "gossip", "weight[p] += (other + held[index[event.answers]]) / 2", "weight[p] += (other + held[index[event.answers]]) / 4", "test_states_that_late_answers_let_grow_are_refused"),
    Mutant("exchanges-no-log", "gossip", "if event.hears in index else 2.0", "if event.hears in index else 1.0", "test_states_that_late_answers_let_grow_are_refused"),
    Mutant("exchanges-qr", "gossip", "margin = 32.0 * (count + n + extra) * UNIT / reciprocal", "margin = 0.0 * (count + n + extra) * UNIT / reciprocal", "test_the_rounding_of_the_factors_is_stated"),
    Mutant("exchanges-tau", "gossip", "/ protocol.sigma * (1 - 4 * UNIT)\n    stacked", "/ protocol.sigma * (1 + 4e-9)\n    stacked", "test_the_rounding_of_the_factors_is_stated"),
    Mutant("dithered-absorbed", "gossip", "_means_apart(protocol) * math.sqrt(numbers / (2 * math.pi * fresh))", "_means_apart(protocol) * math.sqrt(numbers / (4 * math.pi * fresh))", "test_the_distance_is_as_printed"),
    Mutant("dithered-drawn", "gossip", "drawn = numbers / 24 *", "drawn = numbers / 48 *", "test_the_distance_is_as_printed"),
    Mutant("dithered-lost", "gossip", "(123 if protocol.chebyshev is None else 121)", "(124 if protocol.chebyshev is None else 122)", "test_the_distance_is_as_printed", "the finest grid that is allowed leaves e⁻¹²⁸ here, beside terms of 10⁻¹⁶ and more"),
    Mutant("dithered-added", "gossip", "added = (1 + np.exp(at)) * self.apart", "added = np.exp(at) * self.apart", "test_what_the_distance_adds_is_as_printed"),
    Mutant("dithered-sums", "gossip", "apart = protocol.dimension * sum_distance(min(", "apart = sum_distance(min(", "test_sums_of_first_values_are_as_printed"),
    Mutant("dithered-mu", "gossip", "(protocol.distance * protocol.step / protocol.sigma)", "(protocol.sensitivity / protocol.sigma)", "test_what_the_distance_adds_is_as_printed"),
    Mutant("exact-margin", "gossip", "(np.sqrt(values) * (1 + margin) + margin) ** 2, 0.0)", "values, 0.0)", "test_the_margins_of_factors_are_on_top"),
    Mutant("exact-qr", "gossip", "margin += (32.0 * self._count * UNIT + self._dropped)", "margin += (self._dropped)", "test_the_margins_of_factors_are_on_top"),
    Mutant("told-solve", "gossip", "worst + 4 * UNIT * (degree + 4) * (1 + 2 * kappa * degree) * largest", "worst", "test_the_error_of_an_inverse_is_on_top"),
    Mutant("told-neighbours", "gossip", "(1 + 8 * UNIT) / (1.0 + shared[hidden] * kappa", "0.999 / (1.0 + shared[hidden] * kappa", "test_parts_of_a_graph_are_a_bound"),
    Mutant("redrawn-rounding", "gossip", "rounding = 1e-9 + 32 * UNIT * float(gammaln(n + 1.0))", "rounding = 0.0", "test_the_rounding_of_a_connected_graphs_chance_is_taken_off"),
    Mutant("redrawn-own-up", "gossip", "np.ceil(own * _OWN)", "np.floor(own * _OWN)", "test_what_a_star_loses_is_rounded_up"),
    Mutant("redrawn-spread-up", "gossip", "np.ceil(spread * _SPREAD)", "np.floor(spread * _SPREAD)", "test_what_a_star_loses_is_rounded_up"),
    Mutant("sequences-levels", "gossip", "levels = np.ceil(np.log(", "levels = np.floor(np.log(", "test_factors_of_a_mixture_are_rounded_up"),
    # ── tokens ──
    Mutant("walk-grid-below", "token", "below = reach**2 / (24 * v) + numbers", "below = reach**2 / (48 * v) + numbers", "test_the_margins_are_those_that_are_printed"),
    Mutant("walk-grid-added", "token", "added = 2 * numbers * (math.log1p(2 * rest) - math.log1p(-2 * rest))", "added = 0.0", "test_the_margins_are_those_that_are_printed"),
    Mutant("walk-grid-above", "token", "above = numbers / (24 * v)", "above = numbers / (48 * v)", "test_the_margins_are_those_that_are_printed"),
    Mutant("walk-grid-reach", "token", "(1 + 0.5 / math.sqrt(v)) + _TAIL\n        above", "(1 + 0.5 / math.sqrt(v))\n        above", "test_the_margins_are_those_that_are_printed"),
    Mutant("walk-grid-tail", "token", "lost = np.exp(np.minimum(epsilon, 700.0)) * self.tail", "lost = 0.0", "test_the_margins_are_used_as_printed"),
    Mutant("walk-grid-first", "token", "deltas[..., :1] + (-math.expm1(-self.both))", "deltas[..., :1]", "test_the_margins_are_used_as_printed"),
    Mutant("walk-grid-both", "token", "np.concatenate([[0.0], curve.epsilons + self.both])", "np.concatenate([[0.0], curve.epsilons + self.both / 2])", "test_the_margins_are_used_as_printed"),
    Mutant("walk-grid-up", "token", "grown = math.exp(min(self.up, 700.0))", "grown = 1.0", "test_the_margins_are_used_as_printed"),
    Mutant("token-grid-below", "token", "below = math.sqrt(self.variance) * (1 - 4 * UNIT)", "below = math.sqrt(self.variance)", "test_noise_on_the_grid_is_rounded_up_and_in_real_numbers_down"),
    Mutant("token-closing", "token", "math.ceil(Fraction(getattr(self, \"closing\", 0.0)) * self.variance)", "math.floor(Fraction(getattr(self, \"closing\", 0.0)) * self.variance)", "test_closing_noise_is_rounded_up"),
    Mutant("rdp-recursion", "token", "+ scale + 4 * UNIT * steps**2", "+ scale", "test_the_rounding_of_the_recursion_is_on_top"),
    Mutant("rdp-start", "token", "return steps * high + math.log1p(math.expm1(high) / rho)", "return steps * high", "test_the_closed_form_is_above_the_recursion_and_close"),
    Mutant("rdp-tail", "token", "integral += 2 * q * math.exp(float(tails.min()))", "integral += 0.0", "test_a_sampled_step", "beyond 24 deviations the tail is below 10⁻¹⁰⁰"),
    Mutant("rdp-beyond", "token", "* (1 + 1e-12) + rest - 1", "* (1 + 1e-12) - 1", "test_the_closed_form_is_above_the_recursion_and_close", "the series is cut where e⁻⁴⁰ of it is left, below the 10⁻¹² that are added for rounding"),
    Mutant("ring-grid-sum", "token", "return float(each.sum()) * (1 + 1e-9) + len(parts) * 1e-300", "return float(each.sum()) / 2", "test_sums_of_unequal_noises_are_as_printed"),
    Mutant("ring-grid-apart", "token", "apart = protocol.dimension * sum(times * t for (_, t), times in seen)", "apart = sum(times * t for (_, t), times in seen)", "test_what_a_ring_on_a_grid_adds_is_as_printed"),
    Mutant("ring-grid-up", "token", "found = math.exp(min(apart, 700.0)) * (ideal", "found = (ideal", "test_what_a_ring_on_a_grid_adds_is_as_printed"),
    Mutant("ring-grid-mu", "token", "for (variance, _), times in seen\n    ) * (1 + 16 * UNIT)", "for (variance, _), times in seen\n    )", "test_what_a_ring_on_a_grid_adds_is_as_printed"),
    Mutant("known-path-slack", "token", "return 4.0 * UNIT * (steps + 16)", "return 0.0", "test_the_rounding_of_the_energy_is_on_top"),
    Mutant("response-moments-integral", "token", "(deltas @ moment_weights(eps, s)) * (1 + _SUMMED)", "(deltas @ moment_weights(eps, s))", "test_a_bare_response_has_the_moments_that_are_counted_out"),
    Mutant("response-moments-weights", "token", "minlength=len(starts)) * (1 + 16 * UNIT * (law.steps + 64))", "minlength=len(starts))", "test_a_bare_response_has_the_moments_that_are_counted_out"),
    Mutant("published-responses-slack", "token", "return 32 * UNIT * (longest + 16)", "return 16 * UNIT * (longest + 16)", "test_local_dp_is_counted_out_with_its_margin"),
    Mutant("ring-descent-slack", "token", "return 4.0 * UNIT * (protocol.rounds + 16)", "return 0.0", "test_the_rounding_of_the_energy_is_on_top"),
    Mutant("laplace-margin", "token", "margin = 16 * UNIT * (l * math.log(l + 2) + x + 64)", "margin = 0.0 * x", "test_the_margin_of_laplace_noise_is_on_top"),
    Mutant("laplace-lengths", "token", "found.append((_rounded_down(best + 1), math.sqrt(sizes_of[best])))", "found.append((2 * best + 2, math.sqrt(sizes_of[best])))", "test_a_ring_is_a_composition_of_its_segments"),
    Mutant("walks-left", "token", "rest = float(weights[~kept].sum()) * (1 + 1e-9)", "rest = 0.0", "test_rare_labels_count_as_infinite_shifts"),
    Mutant("weights-inside", "token", "left = 1.0 - self.watched - 2 * UNIT", "left = 1.0 - self.watched", "test_chances_are_rounded_to_the_safe_side"),
    Mutant("weights-up", "token", "_UP = 1 + 8 * UNIT", "_UP = 1.0", "test_chances_are_rounded_to_the_safe_side"),
    Mutant("graph-rest", "token", "law[-1] += max(0.0, 1.0 - float(law.sum())) + 4 * most * UNIT", "law[-1] += 0.0", "test_moments_are_those_of_all_paths"),
    Mutant("graph-never", "token", "never = max(1.0 - float(laws.first[: last + 1].sum()), 0.0) + 4 * last * UNIT", "never = 0.0", "test_moments_are_those_of_all_paths"),
    Mutant("graph-outside", "token", "* (1 + 1e-9) + outside, 1.0)", "* (1 + 1e-9), 1.0)", "test_what_is_left_out_of_the_moments_is_added"),
    Mutant("secret-ring-law", "token", "law = (colluders + 1) * m * f / (n - colluders) * (1 + 16 * n * UNIT)", "law = m * f / (n - colluders)", "test_hidden_orders_are_covered"),
    Mutant("response-up", "token", "return math.ceil(Fraction(gamma) * ALL)", "return math.floor(Fraction(gamma) * ALL)", "test_random_answers_are_rounded_up"),
    # ── shuffling ──
    Mutant("response-loss", "token", "return math.log1p(domain * (1.0 - gamma) / gamma) * (1 + 6 * UNIT)", "return math.log1p(domain * (1.0 - gamma) / gamma)", "test_the_loss_of_a_response_is_rounded_up"),
    Mutant("clones-missing", "shuffle", "hidden = cells.missing * local", "hidden = 0.0 * local", "test_what_lies_outside_the_bins_is_lost"),
    Mutant("clones-tau", "shuffle", "shuffled = pure + (2 + np.expm1(eps)) * self.tau", "shuffled = pure + np.expm1(eps) * self.tau", "test_what_a_failed_report_adds_is_as_printed"),
    Mutant("counts-margin", "shuffle", "margin = 8 * UNIT * (self.steps + 16)", "margin = 0.0", "test_the_rounding_of_coins_and_bins_is_on_top"),
    Mutant("counts-relative", "shuffle", "relative = 16 * UNIT * (law.steps + 64)", "relative = 0.0", "test_the_rounding_of_coins_and_bins_is_on_top"),
    Mutant("counts-beyond", "shuffle", "beyond.append(0.0 if high == N else g[-1] / (1 - ratio))", "beyond.append(0.0)", "test_the_rounding_of_coins_and_bins_is_on_top"),
    Mutant("counts-light", "shuffle", "missing += float(weight[~heavy].sum())", "missing += 0.0", "test_what_lies_outside_the_bins_is_lost"),
    Mutant("single-tail", "shuffle", "chance[-1] += float(poisson.sf(top, mean)) * (1 + 1e-9)", "chance[-1] += 0.0", "test_how_many_others_are_there_is_rounded_up", "the next line adds whatever is missing from 1"),
    Mutant("single-chance", "shuffle", "np.asarray(poisson.pmf(k, mean), dtype=np.float64) * (1 + 1e-11)", "np.asarray(poisson.pmf(k, mean), dtype=np.float64)", "test_how_many_others_are_there_is_rounded_up"),
    Mutant("hiding-moved", "shuffle", "self.moved * (np.expm1(eps) + 2 * alone)", "self.moved * np.expm1(eps)", "test_what_moved_labels_add_is_as_printed"),
    Mutant("separation-error", "shuffle", "value *= 1 + 8 * UNIT * (rounds + 64)", "value *= 1", "test_the_rounding_of_the_separation_is_on_top"),
    Mutant("spectral-dense", "shuffle", "SpectralBound(min(1.0, value + 16 * graph.n * UNIT), value, 0, 0.0)", "SpectralBound(min(1.0, value), value, 0, 0.0)", "test_the_rounding_of_the_separation_is_on_top"),
    Mutant("separation-powers", "shuffle", "np.clip(1.0 - least * (1 - error), 0.0, 1.0)", "np.clip(1.0 - least, 0.0, 1.0)", "test_the_rounding_of_the_separation_is_on_top"),
    Mutant("relay-overflow", "shuffle", "return tuple((totals - factorials + slack).tolist())", "return tuple((totals - factorials).tolist())", "test_the_overflow_is_as_printed"),
    Mutant("relay-extra", "shuffle", "* (np.expm1(eps) + 2 * own) * (1 + 8 * UNIT)", "* np.expm1(eps) * (1 + 8 * UNIT)", "test_what_waiting_adds_is_as_printed"),
    Mutant("outages-arrives", "shuffle", "share = (1 - x) / (1 + x) * arrives * (1 - 1e-9)", "share = arrives", "test_the_ways_to_hide_are_as_printed"),
    Mutant("coalition-failure", "shuffle", "quantile = 0.99 * float(chi2.ppf(RETURNS_FAILURE / (len(users)", "quantile = 4 * float(chi2.ppf(RETURNS_FAILURE / (len(users)", "test_the_quantile_of_returns_is_as_printed"),
    # ── curves ──
    Mutant("gaussian-inflate", "curves", "_INFLATE = 1e-12", "_INFLATE = 0.0", "test_a_gaussian_delta_is_rounded_up_by_what_is_stated"),
    Mutant("gaussian-tiniest", "curves", "    delta = np.where(delta < 1e-300, np.nextafter(np.maximum(delta, 0), 1), delta)\n    return np.clip(delta, TINIEST, 1.0)", "    return np.clip(delta, 0.0, 1.0)", "test_a_gaussian_delta_is_rounded_up_by_what_is_stated"),
    Mutant("gaussian-aim", "curves", "_AIM = 2e-12  # how far below log δ the inverses aim,\n_PASS = 1.8e-12", "_AIM = 1e-13\n_PASS = 1e-13", "test_inverses_stay_on_the_safe_side_of_delta"),
    Mutant("tradeoff-down", "curves", "- finite) * (1 - _INFLATE)", "- finite)", "test_a_gaussian_delta_is_rounded_up_by_what_is_stated"),
    Mutant("renyi-epsilon", "curves", "rounding = 8 * UNIT * (np.abs(r) + shrink", "rounding = 0 * UNIT * (np.abs(r) + shrink", "test_conversions_from_one_order_are_as_printed"),
    Mutant("renyi-delta", "curves", "rounding = 8 * UNIT * (log_alpha + excess", "rounding = 0 * UNIT * (log_alpha + excess", "test_conversions_from_one_order_are_as_printed"),
    Mutant("renyi-free", "curves", "np.minimum(np.sqrt(squared) * (1 + 8 * UNIT), 1.0)", "np.minimum(np.sqrt(squared), 1.0)", "test_conversions_from_one_order_are_as_printed"),
    Mutant("curves-hypot", "curves", "mu, round_up(mu)))", "mu, mu))", "test_sums_of_losses_are_rounded_up"),
    Mutant("curves-root", "curves", "type(self)(round_up(round_up(np.sqrt(k) * self._mu)))", "type(self)(np.sqrt(k) * self._mu)", "test_sums_of_losses_are_rounded_up"),
    Mutant("renyi-sum", "curves", "return np.where((a == 0) | (b == 0), total, round_up(total))", "return total", "test_sums_of_losses_are_rounded_up"),
    Mutant("round-up", "curves", "np.where(array == 0, array, np.nextafter(array, np.inf))", "np.asarray(array)", "test_sums_of_losses_are_rounded_up"),
    Mutant("chord-delta", "curves", "(share_high * high + share_low * low) * (1 + 16 * UNIT)", "(share_high * high + share_low * low)", "test_chords_are_rounded_up"),
    Mutant("chord-epsilon", "curves", "np.where(gap <= 1, near, far) * (1 + 16 * UNIT)", "np.where(gap <= 1, near, far)", "test_chords_are_rounded_up"),
    Mutant("losses-infinite", "curves", "self.infinite * (1 + 8 * UNIT) + self.absolute", "self.infinite + self.absolute", "test_what_a_grid_of_losses_adds_is_as_printed"),
    Mutant("losses-absolute", "curves", "+ self.absolute * weight[:count] * 1.001", "", "test_what_a_grid_of_losses_adds_is_as_printed"),
    Mutant("losses-dropped", "curves", "absolute += 2.5 * _TAIL", "absolute += 0.0", "test_what_a_grid_of_losses_adds_is_as_printed"),
    Mutant("losses-relative", "curves", "relative += 2 * UNIT * min(a.size, b.size)", "relative += 0.0", "test_what_a_grid_of_losses_adds_is_as_printed"),
    Mutant("losses-stretch", "curves", "stretch = 1 + 1e-12", "stretch = 1.0", "test_composed_points_are_stretched"),
    Mutant("rounded-up", "curves", "return _rounded(value, digits, ROUND_CEILING)", "return _rounded(value, digits, ROUND_FLOOR)", "test_rounding"),
    Mutant("rounded-down", "curves", "return _rounded(value, digits, ROUND_FLOOR)", "return _rounded(value, digits, ROUND_CEILING)", "test_rounding"),
    Mutant("sampled-eta", "curves", "return 64 * UNIT * (1 + abs(math.log(self.q))", "return 32 * UNIT * (1 + abs(math.log(self.q))", "test_what_edges_may_be_off_by_is_as_printed"),
    Mutant("sampled-moved", "curves", "(1 + 1e-12) + moved\n    nothing", "(1 + 1e-12)\n    nothing", "test_what_edges_may_be_off_by_is_as_printed"),
    Mutant("sampled-nothing", "curves", "(float(deltas[0]) + math.expm1(min(moved, 1.0)))", "float(deltas[0])", "test_what_edges_may_be_off_by_is_as_printed"),
    # ── mechanisms ──
    Mutant("moved-factor", "mechanisms", "math.exp(min(apart, 700.0)) * delta * (1 + 8 * UNIT)", "delta * (1 + 8 * UNIT)", "test_vectors_of_coarse_shares_cost_as_printed"),
    Mutant("moved-twice", "mechanisms", "shifted = epsilon - 2 * apart\n    delta = ", "shifted = epsilon - apart\n    delta = ", "test_vectors_of_coarse_shares_cost_as_printed"),
    Mutant("drawn-variance", "mechanisms", "math.sqrt(variance - around)", "math.sqrt(variance)", "test_the_bound_for_vectors_is_as_printed"),
    Mutant("drawn-apart", "mechanisms", "return spread, numbers * (math.log1p(2 * rest)", "return spread, (math.log1p(2 * rest)", "test_whole_numbers_drawn_around_gaussians_are_as_close_as_stated"),
    Mutant("drawn-half", "mechanisms", "(2 * math.pi**2), variance / 2)", "(4 * math.pi**2), variance / 2)", "test_the_bound_for_vectors_is_as_printed"),
    Mutant("shift-sum-error", "mechanisms", "seen = distribution(m) * (1 + _SUM_ERROR) + 1e-300", "seen = distribution(m)", "test_the_margins_of_one_shift_are_as_printed"),
    Mutant("shift-other-error", "mechanisms", "growth * distribution(m - shift) * (1 - _SUM_ERROR)", "growth * distribution(m - shift)", "test_the_margins_of_one_shift_are_as_printed"),
    Mutant("sum-distance", "mechanisms", "return (float(each.sum()) + further) * (1 + 1e-9)", "return (float(each.sum()) + further) / 2", "test_the_distance_of_sums_is_as_printed"),
    Mutant("sum-further", "mechanisms", "further = max(parties - 1_000_000, 0) * float(each[-1])", "further = 0.0", "test_shares_beyond_a_million_are_counted_as_the_millionth"),
    Mutant("laplace-scale", "mechanisms", "(self.sensitivity + 2 * self._rounding) / self.epsilon0", "self.sensitivity / self.epsilon0", "test_scales_are_rounded_up"),
    Mutant("laplace-curve", "mechanisms", "self.profile(epsilons) * (1 + 8 * UNIT) + 4 * UNIT * self.epsilon0", "self.profile(epsilons)", "test_scales_are_rounded_up"),
    Mutant("discrete-laplace", "mechanisms", "rounding = 8 * UNIT * (2 + rate * shift)", "rounding = 0.0", "test_scales_are_rounded_up"),
    Mutant("flip-up", "mechanisms", "others / (1 + others) * (1 + 8 * UNIT)", "others / (1 + others)", "test_scales_are_rounded_up"),
    Mutant("unary-up", "mechanisms", "return 1 / (math.exp(half) + 1) * (1 + 16 * UNIT)", "return 1 / (math.exp(half) + 1)", "test_scales_are_rounded_up"),
    Mutant("share-of-words", "mechanisms", "above = exp_floor(p, q, 256) + 1", "above = exp_floor(p, q, 256)", "test_the_loss_of_an_answer_is_rounded_up", "2⁻²⁵⁶ more or less in e^{−ε₀} moves no whole number of words"),
    Mutant("log-ratio", "mechanisms", "math.log1p(excess) * (1 + 2.0**-50) + 5e-324", "math.log1p(excess)", "test_scales_are_rounded_up"),
    Mutant("grid-gaussian", "mechanisms", "math.ceil((Fraction(self.sigma) * self.steps / Fraction(self.sensitivity)) ** 2)", "math.floor((Fraction(self.sigma) * self.steps / Fraction(self.sensitivity)) ** 2)", "test_scales_are_rounded_up"),
    Mutant("fine-gaussian", "mechanisms", "return 1.0 / (24.0 * count(\"variance\", variance))", "return 1.0 / (48.0 * count(\"variance\", variance))", "test_scales_are_rounded_up"),
    Mutant("privunit-flips", "mechanisms", "(1 - low + math.exp(self.epsilon0) * low) * (1 + 1e-13))", "(1 - low + math.exp(self.epsilon0) * low) * (1 - 1e-9))", "test_the_shares_of_caps_are_as_printed"),
    Mutant("privunit-rim", "mechanisms", "(rim * blurred + tail) * (1 + error)", "(rim * blurred / 2 + tail) * (1 + error)", "test_the_shares_of_caps_are_as_printed"),
    Mutant("privunit-b", "mechanisms", "b = (math.sqrt(d) + r + h / s) ** 2 / (24 * v)", "b = (math.sqrt(d) + r + h / s) ** 2 / (48 * v)", "test_the_shares_of_caps_are_as_printed"),
    # ── coalitions ──
    Mutant("currents-rounding", "coalitions", "rounding = 4 * UNIT * (d + 4)", "rounding = 2 * UNIT * (d + 4)", "test_the_rounding_of_currents_is_on_top"),
    Mutant("currents-wrong", "coalitions", "minlength=n) + 2 * self.degrees * wrong", "minlength=n)", "test_the_rounding_of_currents_is_on_top"),
    Mutant("currents-upper", "coalitions", "return min(float(potential[target]) + wrong, 1.0), current", "return min(float(potential[target]), 1.0), current", "test_the_rounding_of_currents_is_on_top"),
    # ── plans ──
    Mutant("links-most", "plans", "for rings in range(most + 1):", "for rings in range(most + 2):", "test_where_it_stops"),
    Mutant("headroom", "plans", "HEADROOM = 1 + 1e-9\n", "HEADROOM = 1 - 1e-7\n", "test_the_headroom_is_as_printed"),
    Mutant("gossip-headroom", "plans", "_HEADROOM = 1e-9\n", "_HEADROOM = 0.0\n", "test_the_headroom_is_as_printed"),
    Mutant("masked-missed", "plans", "colluders, missed, delta)\n    delta -= missed * (1 + 1e-12)\n", "colluders, missed, delta)\n", "test_the_probability_of_a_cut_is_taken_off_delta"),
    Mutant("masked-plan-missed", "plans", "float(curve.epsilon(delta - missed * (1 + 1e-12))) <= epsilon", "float(curve.epsilon(delta)) <= epsilon", "test_plan_masked", "`calibrate` has taken it off before: this asks once more, where a rounded σ changes the grid"),
    # ── Laplace noise in shares ──
    Mutant("shares-rate", "laplace", "square = Fraction(self.sigma / self.step) ** 2 / 2 + Fraction(1, 12)", "square = Fraction(self.sigma / self.step) ** 2 / 4", "test_the_rate_is_as_printed"),
    Mutant("shares-pure", "laplace", "return near if Fraction(near) >= value else math.nextafter(near, math.inf)", "return math.nextafter(near, 0.0)", "test_laplace_sums"),
    Mutant("shares-step", "laplace", "_STEP_ERROR = 32 * UNIT", "_STEP_ERROR = 0 * UNIT", "test_laplace_sums"),
    Mutant("shares-sums", "laplace", "error = (_BLOCK + steps / _BLOCK + 16) * UNIT", "error = 0 * UNIT", "test_laplace_sums"),
    Mutant("shares-counted", "laplace", "margin = 1e-11 * (1 + eps)", "margin = 0.0 * eps", "test_laplace_sums"),
    Mutant("shares-inside", "laplace", "found = inside * (1 + 4 * margin) - ", "found = inside - ", "test_laplace_sums"),
    Mutant("shares-tail", "laplace", "np.where(eps < self.tail_loss, self.tail, 0.0)", "0.0 * eps", "test_laplace_sums"),
    Mutant("shares-most", "laplace", "most = float(high[0] - low[distance]) * (1 + 8 * UNIT) + 8 * UNIT", "most = float(low[0] - high[distance])", "test_laplace_sums"),
    Mutant("shares-vectors", "laplace", "together = single.self_compose(release.dimension)", "together = single", "test_laplace_sums"),
    Mutant("shares-even", "laplace", "least, more = divmod(release.distance, numbers)", "least, more = divmod(release.distance, 1)[0] // numbers, 0", "test_laplace_sums"),
    Mutant("ring-laplace-distance", "laplace", "return math.ceil(steps) + self.dimension - 1", "return math.ceil(steps)", "test_laplace_ring"),
    Mutant("ring-laplace-segment", "laplace", "(min(sum(key), protocol.parts), 0.0)", "(protocol.parts, 0.0)", "test_laplace_ring"),
    Mutant("ring-laplace-bare", "laplace", "if any(shares == 0 for (shares, _), _ in seen):\n        return ProfileCurve([0.0], [1.0])", "if False:\n        return ProfileCurve([0.0], [1.0])", "test_laplace_ring"),
    # ── descents in whole numbers ──
    Mutant("descents-reach", "descents", "return (self.length * (1 + SLACK) + math.sqrt(self.dimension) / 2) * (1 + 4 * UNIT)", "return self.length * (1 + SLACK)", "test_descent_grid test_walk_descent_grid"),
    Mutant("descents-apart", "descents", "Release(protocol.variance, 1, 2 * protocol.reach, protocol.dimension)", "Release(protocol.variance, 1, protocol.reach, protocol.dimension)", "test_descent_grid"),
    Mutant("descents-curator", "descents", "release = Release(protocol.variance, protocol.n, 2 * protocol.reach,", "release = Release(protocol.variance, protocol.n, protocol.reach,", "test_descent_grid"),
    Mutant("descents-squares", "descents", "squares += times * error**2 / variance", "squares += times * error**2 / (4 * variance)", "test_the_distance_is_its_printed_expression"),
    Mutant("descents-drawn", "descents", "drawn += times * numbers / (24 * variance)", "drawn += times * numbers / (48 * variance)", "test_what_fresh_noise_absorbs_is_its_printed_expression"),
    Mutant("descents-own", "descents", "own = math.sqrt(parties * protocol.dimension) / 2 + ", "own = ", "test_the_distance_is_its_printed_expression"),
    Mutant("descents-float", "descents", "GRADIENT_ERROR = 2.0**-32", "GRADIENT_ERROR = 2.0**-33", "test_the_distance_is_its_printed_expression"),
    Mutant("descents-carried", "descents", "return (protocol.expansion * carried + own)", "return own", "test_the_distance_is_its_printed_expression"),
    Mutant("descents-mixed", "descents", "carried = math.sqrt(numbers)  # half", "carried = math.sqrt(numbers) / 2  # half", "test_the_distance_is_its_printed_expression"),
    Mutant("descents-added", "descents", "added = (1 + np.exp(at)) * apart * (1 + 8 * UNIT)", "added = np.exp(at) * apart", "test_descent_grid"),
    Mutant("descents-near", "descents", "better = (kinds >= 0) & (kinds < 1)", "better = kinds >= 0", "test_descent_grid"),
    Mutant("descents-stretched", "descents", "np.minimum(expansion * carried, 1e150) + unit", "carried + unit", "test_descent_grid"),
    Mutant("descents-fresh", "descents", "variance = later if k else 1.0", "variance = 1.0", "test_descent_grid"),
    Mutant("descents-paid", "descents", "paid + np.where(reveal, everything, shown)", "paid + shown", "test_descent_grid"),
    Mutant("walk-descent-added", "descents", "added = (1 + np.exp(points)) * apart * (1 + 8 * UNIT)", "added = np.exp(points) * apart", "test_walk_descent_grid"),
    Mutant("walk-descent-carried", "descents", "carried = math.sqrt(protocol.dimension) / 2\n    true", "carried = 0.0\n    true", "test_walk_descent_grid"),
    # ── accelerated gossip and changing links on a grid ──
    Mutant("accelerated-means", "gossip", "apart = (3 * gamma - 1) / 2 + (gamma - 1) * apart", "apart = (3 * gamma - 1) / 2", "test_accelerated_grid"),
    Mutant("changing-rounding", "gossip", "extra=T * (degree + 3))", "extra=0)", "test_the_rounding_of_changing_factors_is_stated"),
    # ── the one attempt ──
    Mutant("threshold-safe", "peers", "return 2 * threshold > n + colluders", "return 2 * threshold >= n + colluders", "test_threshold"),
    Mutant("ballot-certificate", "peers", "len(self._voters[key][choice] | self.liars) < self.threshold:", "len(self._voters[key][choice] | self.liars) < self.threshold - 1:", "test_ballot test_ballot_states"),
    Mutant("ballot-quorum", "peers", "if not self.size < 2 * self.threshold <= 2 * self.size:", "if not self.size <= 2 * self.threshold <= 2 * self.size:", "test_ballot"),
    Mutant("reveal-erases", "peers", "self.attempt, body, erased=(SECRETS, SHARES))", "self.attempt, body)", "test_secrets_go_in_the_transaction_that_makes_them_needless"),
    Mutant("contribution-erases", "peers", "erased = (SECRETS,) if self.study.running.threshold is not None else ()", "erased = ()", "test_secrets_go_in_the_transaction_that_makes_them_needless"),
    Mutant("contribution-voted", "peers", "if self._voted(self._store.votes(self.study.hash)[attempt][0]) != roster:", "if False:", "test_desk"),
    Mutant("share-checked", "peers", "return all(is_share(context, dealing, holder, kind, share.of(kind)) for kind in Secret)", "return True", "test_dealing"),
    # ── budgets ──
    Mutant("filter-parts", "budgets", "rest = deltas * (1 - PURE) / 2", "rest = deltas * (1 - PURE)", "test_the_parts_of_delta_are_the_printed_ones"),
    Mutant("filter-slack-counts", "budgets", "((told + used) * (1 + 4 * UNIT) <= self.deltas)", "(told * (1 + 4 * UNIT) <= self.deltas)", "test_slack_is_counted_beside_the_losses"),
    Mutant("filter-pure-used", "budgets", "used[0] = 0.0 if math.isfinite(pure) else slacks[0]", "used[0] = 0.0", "test_slack_is_charged_for_all_that_is_no_gaussian"),
    Mutant("filter-gaussian-used", "budgets", "* (1 + 4 * UNIT), slacks[1]\n", "* (1 + 4 * UNIT), 0.0\n", "test_slack_is_charged_for_all_that_is_no_gaussian"),
    Mutant("filter-renyi-used", "budgets", "pair.divergence(orders, slacks[2]), slacks[2]", "pair.divergence(orders, slacks[2]), 0.0", "test_slack_is_charged_for_all_that_is_no_gaussian"),
    Mutant("filter-sums-up", "budgets", "(self.spent + times * spent) * (1 + 4 * UNIT), (self.used + times * used) * (1 + 4 * UNIT)", "self.spent + times * spent, self.used + times * used", "test_the_rounding_of_sums_is_on_top"),
    Mutant("filter-times", "budgets", "(self.used + times * used)", "(self.used + used)", "test_slack_is_counted_beside_the_losses"),
    Mutant("filter-mu-up", "budgets", "np.sqrt(finite[1]) * (1 + 4 * UNIT), self.epsilons", "np.sqrt(finite[1]), self.epsilons", "test_the_rounding_of_sums_is_on_top"),
    Mutant("filter-renyi-up", "budgets", "finite[2], self.epsilons), 0.0)) * (1 + 8 * UNIT)", "finite[2], self.epsilons), 0.0))", "test_the_rounding_of_sums_is_on_top"),
    Mutant("filter-square-up", "budgets", "float(loss.mu) ** 2 * (1 + 4 * UNIT), np.asarray(loss.rdp(orders)) * (1 + 4 * UNIT)", "float(loss.mu) ** 2, np.asarray(loss.rdp(orders))", "test_the_rounding_of_sums_is_on_top"),
    Mutant("pair-p", "budgets", "np.minimum((deltas[:-1] + above) * (1 + 16 * UNIT), 1.0)", "np.minimum(deltas[:-1] + above, 1.0)", "test_the_margins_of_a_pair_are_as_printed"),
    Mutant("pair-q", "budgets", "above * np.exp(-self.losses[:-1]) * (1 - 16 * UNIT)", "above * np.exp(-self.losses[:-1])", "test_the_margins_of_a_pair_are_as_printed"),
    Mutant("pair-more", "budgets", "np.maximum(np.max(less, axis=1), np.max(more, axis=1))", "np.max(less, axis=1)", "test_a_curve_is_gaussian_but_for_its_slack", "of a symmetric pair Q_k ≤ 1 − P_k: the other corner is never the worse one"),
    Mutant("pair-less", "budgets", "np.maximum(np.max(less, axis=1), np.max(more, axis=1))", "np.max(more, axis=1)", "test_a_curve_is_gaussian_but_for_its_slack"),
    Mutant("pair-mu-up", "budgets", "np.maximum(found, 0.0) * (1 + 1e-12) + 1e-13)", "np.maximum(found, 0.0))", "test_the_margins_of_a_pair_are_as_printed"),
    Mutant("pair-infinite", "budgets", "found = np.where(self.infinite > slack, math.inf, found)", "found = found", "test_a_chance_to_lose_all_needs_its_slack"),
    Mutant("pair-cut-off", "budgets", "kept[:, 0] - below, 0.0) + order * slack", "kept[:, 0] - below, 0.0)", "test_a_divergence_is_that_of_a_law_near_by"),
    Mutant("pair-moment-up", "budgets", "np.maximum(moment * (1 + 1e-12) + 1e-12, 0.0) / (order - 1) * (1 + 4 * UNIT)", "np.maximum(moment, 0.0) / (order - 1)", "test_the_margins_of_a_pair_are_as_printed"),
    Mutant("pair-rest-up", "budgets", "np.log(rest + 1e-13)", "np.log(rest)", "test_the_margins_of_a_pair_are_as_printed"),
    Mutant("filter-whole", "budgets", "return not self._whole and bool(self._sums.admits(loss)[0])", "return self._whole or bool(self._sums.admits(loss)[0])", "test_the_first_loss_may_use_the_whole_limit test_refusals_count_nothing_and_name_numbers"),
    Mutant("filter-first", "budgets", "if self.studies == 0 and float(loss.epsilon", "if self.studies <= 1 and float(loss.epsilon", "test_the_first_loss_may_use_the_whole_limit"),
    Mutant("odometer-first", "budgets", "float(loss.epsilon(_FIRST * self.delta)) if self._losses == 1", "float(loss.epsilon(self.delta)) if self._losses == 1", "test_filters"),
    Mutant("odometer-alone", "budgets", "if self._losses == 1 else math.inf", "if self._losses <= 2 else math.inf", "test_filters"),
    Mutant("odometer-levels", "budgets", "(1 - _FIRST - _FAR) / LEVELS", "1 / LEVELS", "test_an_odometer_gives_away_no_more_than_its_delta"),
    Mutant("odometer-outer", "budgets", "_FAR / 2 * np.arange(1.0, _OUTER + 1)", "_FAR * np.arange(1.0, _OUTER + 1)", "test_an_odometer_gives_away_no_more_than_its_delta"),
    Mutant("odometer-foreseen", "budgets", "times if foreseen else times + 1", "times", "test_a_first_loss_that_shows_only_in_the_end_is_read_off_the_levels"),
    Mutant("ledger-foreseen", "budgets", "odometer.spend(loss, times, foreseen=foreseen)", "odometer.spend(loss, times)", "test_a_cost_that_shows_only_in_the_end_is_read_off_the_levels"),
    Mutant("policy-one-way", "budgets", "one_way = study.privacy.attempts == 1 and len(study.running.costly_rosters(me)) == 1", "one_way = True", "test_the_first_study_of_a_period_may_use_all_of_it_if_it_can_go_one_way_only"),
    Mutant("policy-attempts", "budgets", "number = left + len(here) - len(corrections)", "number = len(here) - len(corrections) + min(left, 1)", "test_policy"),
    Mutant("policy-clock", "budgets", "if begun or entry.time < latest:", "if begun:", "test_clocks_that_were_behind_make_no_budget"),
    Mutant("policy-admits", "budgets", "else max(together, math.nextafter(limit.epsilon, math.inf))", "else min(together, limit.epsilon)", "test_policy"),
    # ── peers and ledger ──
    Mutant("party-attempts", "peers", "if len(self._mine) >= self.terms.attempts:\n            self._end(Sentence.USED_UP(", "if len(self._mine) > self.terms.attempts:\n            self._end(Sentence.USED_UP(", "test_no_contribution_beyond_those_that_the_study_allows"),
    Mutant("party-gives-up", "peers", "len(self._mine) >= self.terms.attempts:\n            self._end(Sentence.USED_UP_WITHOUT(", "len(self._mine) > self.terms.attempts:\n            self._end(Sentence.USED_UP_WITHOUT(", "test_attempts_used_up"),
    Mutant("ledger-square", "peers", "squares.append(float(part.mu) ** 2 * (1 + 4 * UNIT))", "squares.append(float(part.mu) ** 2)", "test_losses_add_up_as_printed"),
    Mutant("ledger-root", "peers", "GaussianCurve(math.sqrt(math.fsum(squares)) * (1 + 4 * UNIT))", "GaussianCurve(math.sqrt(math.fsum(squares)))", "test_losses_add_up_as_printed"),
    Mutant("task-root", "peers", "return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)", "return root", "test_roots_are_rounded_up"),
)
# fmt: on


def sources(folder: Path) -> dict[Path, str]:
    """The text of every module below a folder."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}


def place_of(fragment: str, texts: dict[Path, str]) -> Path:
    """The one module in which the piece of source is, once; a LookupError says what is wrong otherwise."""
    found = [path for path, text in texts.items() for _ in range(text.count(fragment))]
    if len(found) != 1:
        where = ", ".join(sorted({path.name for path in found})) or "nowhere"
        raise LookupError(f"{fragment!r} must occur once in the sources and occurs {len(found)} times ({where})")
    return found[0]


def tests_of(names: str, texts: dict[Path, str]) -> list[str]:
    """What pytest is asked to run: files of these names, or functions of these names wherever they are."""
    asked: list[str] = []
    for name in names.split():
        files = [str(path.relative_to(ROOT)) for path in texts if path.stem == name]
        wanted = re.compile(rf"^def {re.escape(name)}\(", re.MULTILINE)
        files += [f"{path.relative_to(ROOT)}::{name}" for path, text in texts.items() if wanted.search(text)]
        if not files:
            raise LookupError(f"no test file and no test function is called {name!r}")
        asked += files
    return asked


@contextmanager
def mutated(path: Path, text: str, mutant: Mutant) -> Iterator[None]:
    """The copy with one fragment replaced; compiled anew before and after, so that nothing old is imported."""
    try:
        path.write_text(text.replace(mutant.fragment, mutant.replacement), encoding="utf-8")
        py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def preload() -> None:
    """What all tests import, but nothing of netdp: every run is a copy of this process, and need not load it again."""
    for name in (
        "mpmath",
        "networkx",
        "numba",
        "pytest",
        "scipy.optimize",
        "scipy.signal",
        "scipy.sparse.linalg",
        "scipy.stats",
    ):
        importlib.import_module(name)


def run(asked: list[str], source: Path) -> tuple[int, str]:
    """pytest on these tests with these sources, in a process of its own: its exit code, and what failed first."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if child == 0:
            code = 3
            try:
                os.chdir(ROOT)
                os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
                sys.dont_write_bytecode = True
                sys.path.insert(0, str(source))
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                pytest = importlib.import_module("pytest")
                code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=no", *asked]))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        end = time.monotonic() + SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return 1, "time"
            time.sleep(0.05)
        code = os.waitstatus_to_exitcode(ended[1])
        said.seek(0)
        text = said.read()
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:::(\w+))?(?:\[.*)?(?: - .*)?$", text, re.MULTILINE)
    if failed is None:
        return code, "" if code == 0 else text[-300:]
    return code, Path(failed[1]).stem + (f"::{failed[2]}" if failed[2] else "")


def fate_of(
    mutant: Mutant, source: Path, texts: dict[Path, str], tests: dict[Path, str], sound: dict[str, bool]
) -> Fate:
    """Apply it, run its tests, take it back."""
    asked, path = tests_of(mutant.tests, tests), place_of(mutant.fragment, texts)
    start = time.perf_counter()
    if mutant.tests not in sound:
        code, said = run(asked, source)
        sound[mutant.tests] = code == 0
        if code:
            return Fate(mutant, "unsound", f"fails without it, too: {said}", time.perf_counter() - start)
    if not sound[mutant.tests]:
        return Fate(mutant, "unsound", "its tests fail without it, too", 0.0)
    with mutated(path, texts[path], mutant):
        code, by = run(asked, source)
    word = {0: "survived", 1: "killed"}.get(code, "broken")
    return Fate(mutant, word, by or mutant.why_it_lives, time.perf_counter() - start)


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """The mutants that are asked for."""
    if options.quick:
        return [MUTANTS[0]]
    found = [
        one for one in MUTANTS if (not options.only or one.name in options.only) and options.family in ("", one.family)
    ]
    if not found:
        raise SystemExit(f"no mutant is called {', '.join(options.only)}; --list names all")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one mutant only")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these mutants only")
    parser.add_argument(
        "--family", default="", help="those of one family only: " + ", ".join(dict.fromkeys(m.family for m in MUTANTS))
    )
    parser.add_argument("--list", action="store_true", help="name all mutants and where they are, and run nothing")
    options = parser.parse_args()
    tests = {path: text for path, text in sources(ROOT / "tests").items() if path.name.startswith("test_")}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("*.egg-info"))
        texts, sound, fates = sources(source), dict[str, bool](), list[Fate]()
        wanted, known = chosen(options), list[Mutant]()
        for mutant in wanted:
            try:
                where, asked = place_of(mutant.fragment, texts), tests_of(mutant.tests, tests)
            except LookupError as refusal:
                fates.append(Fate(mutant, "lost", str(refusal), 0.0))
                show(fates[-1])
                continue
            known.append(mutant)
            if options.list:
                print(f"{mutant.name:22} {mutant.family:11} {where.relative_to(source)}  {' '.join(asked)}")
        if options.list:
            if fates:
                raise SystemExit(1)
            return
        preload()
        every = sorted({test for mutant in known for test in tests_of(mutant.tests, tests)})
        if known and run(every, source)[0] == 0:  # else each is looked at by itself
            sound = dict.fromkeys((mutant.tests for mutant in known), True)
        for mutant in known:
            fates.append(fate_of(mutant, source, texts, tests, sound))
            show(fates[-1])
    alive = [fate.mutant for fate in fates if fate.word != "killed"]
    print(
        f"{len(fates)} mutants: {len(fates) - len(alive)} killed; not: {', '.join(one.name for one in alive) or 'none'}"
    )
    if any(not one.why_it_lives for one in alive):
        raise SystemExit(1)


def show(fate: Fate) -> None:
    """One line of the table."""
    print(f"{fate.mutant.name:22} {fate.mutant.family:11} {fate.word:9} {fate.seconds:6.1f} s  {fate.by}", flush=True)


if __name__ == "__main__":
    main()
