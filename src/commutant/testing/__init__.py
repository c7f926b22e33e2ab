"""Checks for pytest, or any other runner of tests: the same as the verbs `conform` and `check`, as functions that fail.

    from commutant.testing import check_model, check_sharing

    def test_the_file_system_does_what_the_model_says():
        check_model("names", "scalefs")

    def test_nothing_new_is_shared(tmp_path):
        check_sharing("names", "scalefs", baseline="baseline/1", directory=tmp_path / "run")

A check that fails raises AssertionError, whose message is what the verb prints. What could not be checked (a target
that does not start, a model that fails) raises `commutant.support.errors.CommutantError`.
"""

from commutant.testing.model import check_model
from commutant.testing.sharing import check_sharing

__all__ = ["check_model", "check_sharing"]
