"""A model whose manifest is gone is said to be unchecked; a run's checkpoint without it is damaged."""

import pytest

from kinds import picture_tokenizer
from runs import said
from sqvae.cli import main


@pytest.mark.filterwarnings("always::sqvae.files.UncheckedWarning")
def test_a_model_without_its_manifest_is_said_to_be_unchecked(tmp_path, capsys):
    picture_tokenizer("pictures").save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    assert main(["export", str(tmp_path / "model"), "--pretrained", "-o", str(tmp_path / "again")]) == 0
    words = said(capsys)
    assert "has no manifest.json" in words
    assert "UserWarning" not in words
    assert "UncheckedWarning" not in words
