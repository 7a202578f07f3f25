"""joblib's work as tasks. The how-to pages, which are tested too, contain a search of scikit-learn."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pytest

import yurt
from tests.api.conftest import Here
from yurt.contexts import folders
from yurt.model import calls
from yurt.recipes.joblib import YurtBackend
from yurt.recipes.shared import Sharing
from yurt.store import calls as kept_calls


def test_shared_arrays_are_uploaded_once(here: Here) -> None:
    data = np.random.RandomState(1).normal(size=(2000, 10))
    with yurt.executor("local") as executor, joblib.parallel_config(backend=YurtBackend(executor)):
        found = joblib.Parallel()(joblib.delayed(np.percentile)(data, part) for part in (0, 50, 100))
    assert found == [np.percentile(data, part) for part in (0, 50, 100)]
    with folders.store() as index:
        kept = calls.unpack(kept_calls.of(index, here.sweeps()[0]) or b"")
    sizes = [len(arguments) for _function, arguments in kept.calls]
    assert len(kept.functions) == 1 and len(kept.functions[0]) > data.nbytes > 20 * max(sizes), sizes


def test_other_work_of_joblib_and_its_errors(here: Here) -> None:
    with (
        yurt.executor("local", max_parallel=2) as executor,
        joblib.parallel_config(backend=YurtBackend(executor)),
        warnings.catch_warnings(action="error"),
    ):
        assert joblib.Parallel()(joblib.delayed(pow)(n, 2) for n in range(3)) == [0, 1, 4]
        with pytest.raises(ValueError, match="invalid literal"):
            joblib.Parallel(n_jobs=3)(joblib.delayed(int)(text) for text in ["1", "x", "3"])
        assert joblib.Parallel()([joblib.delayed(abs)(-1)]) == [1], "it works again after an error"
        with pytest.raises(ValueError, match="n_jobs == 0"):
            joblib.Parallel(n_jobs=0)([joblib.delayed(abs)(-1)])
    with pytest.raises(ValueError, match="jobs must be at least 2, not 1"):
        YurtBackend(executor, jobs=1)


def test_only_arrays_of_the_first_item_are_shared() -> None:
    large, other = np.zeros(10_000), np.ones(10_000)
    sharing = Sharing(large.sum)
    function, first = sharing.split(large.sum)
    same, second = sharing.split(lambda: (large.sum(), other.sum()))
    assert same is function and len(function.content) > large.nbytes
    assert len(first) < 5_000 and other.nbytes < len(second) < large.nbytes + other.nbytes
    assert function(first) == 0 and function(second) == (0, 10_000)
