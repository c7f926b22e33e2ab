"""Predictions for two cores, judged by two: the fit, the figures, and how far two processors are from each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import two_cores
from bench.scaling import section
from bench.two_cores import FITTED, JUDGED, Counts, Variant, figures_of, fitted, rank_correlation, topology
from commutant.scale.constants import read_constants


def test_constants_are_fitted_to_a_few_and_judged_on_others(tmp_path: Path) -> None:
    assert (len(FITTED), len(JUDGED)) == (5, 20)
    assert not set(FITTED) & set(JUDGED)
    truth = (0.3, 40.0, 15.0)
    counts = [
        Counts((1000.0, 1000.0), (0.0, 0.0), (0.0, 0.0)),
        Counts((500.0, 510.0), (0.0, 1.0), (0.0, 0.5)),
        Counts((800.0, 800.0), (0.0, 8.0), (0.0, 1.0)),
    ]
    times = [
        (truth[0] * one.instructions[0], sum(a * b for a, b in zip(truth, _two(one), strict=True))) for one in counts
    ]
    constant = fitted(list(zip(counts, times, strict=True)))
    assert (constant.instruction_ns, constant.miss_ns, constant.upgrade_ns) == pytest.approx(truth)
    file = tmp_path / "constants.toml"
    file.write_text(constant.to_toml("a machine"))
    assert read_constants(file).miss_ns.value == pytest.approx(40)


def _two(counts: Counts) -> tuple[float, float, float]:
    return (counts.instructions[1], counts.misses[1], counts.upgrades[1])


def test_constants_are_no_less_than_nothing() -> None:
    counts = [Counts((10.0, 10.0), (0.0, 1.0), (0.0, upgrades)) for upgrades in (0.0, 1.0)]
    constant = fitted([(counts[0], (10.0, 60.0)), (counts[1], (10.0, 50.0))])
    assert constant.upgrade_ns == pytest.approx(1e-3)
    assert constant.miss_ns == pytest.approx(45)


def test_figures_say_what_was_missed() -> None:
    variants = [Variant("counter", work) for work in range(4)]
    measured = dict(zip(variants, (3.0, 2.0, 1.05, 0.8), strict=True))
    good = figures_of(dict(zip(variants, (3.1, 2.2, 1.0, 0.9), strict=True)), measured, "near")
    assert [figure.met for figure in good[-3:]] == [True, True, True]
    assert good[-3].name == "two real cores (near), 4 variants: wrong signs"
    assert len(good) == 2 * 4 + 3
    bad = figures_of(dict(zip(variants, (0.9, 1.0, 1.2, 2.0), strict=True)), measured, "near")
    assert [figure.met for figure in bad[-3:]] == [False, False, False]
    assert bad[-3].median == 3
    assert rank_correlation([(1.0, 1.0), (1.0, 2.0)]) == 0
    area = {"date": "2026-01-01", "machine": {"commit": "0123456789"}, "figures": [one.to_json() for one in bad]}
    lines = section(area)
    assert "| two real cores (near), 4 variants: wrong signs | 3.00  | ≤ 0, **missed** |" in lines
    assert not any("rounds of work" in line for line in lines)


def test_processors_are_siblings_near_or_far(tmp_path: Path) -> None:
    assert topology(tmp_path) == "unknown"
    for packages, cores, expected in (
        ("00", "00", "siblings of one core"),
        ("00", "01", "near, of one socket"),
        ("01", "00", "far, of two sockets"),
    ):
        for processor in (0, 1):
            folder = tmp_path / f"cpu{processor}" / "topology"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "physical_package_id").write_text(packages[processor] + "\n")
            (folder / "core_id").write_text(cores[processor] + "\n")
        assert topology(tmp_path) == expected
    assert two_cores.SOURCE.exists()
