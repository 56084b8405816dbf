"""Names of `sqvae.experiment`, which is now several rooms, are still found there, with a warning."""

import pytest

import sqvae


def test_a_former_name_is_found_with_a_warning_that_says_the_new_one():
    from sqvae import experiment

    with pytest.warns(DeprecationWarning, match=r"sqvae\.tokenizers\.load"):
        assert experiment.load is sqvae.load
    with pytest.warns(DeprecationWarning, match=r"sqvae\.config\.Experiment"):
        assert experiment.Experiment is sqvae.Experiment


def test_what_never_was_there_is_not():
    from sqvae import experiment

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = experiment.nothing
