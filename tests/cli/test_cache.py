"""`commutant cache`: what is kept, as text and as JSON, and tidying it."""

from __future__ import annotations

import json

import jsonschema

from tests.repository.tree import ROOT


def test_the_cache_folder_is_listed_and_tidied(process, tmp_path):
    kept = tmp_path / "cache" / "commutant" / "results" / "one"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 4096)
    answer = process("cache", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "results" in answer.stdout and "1 entry: analyses and corpora" in answer.stdout
    answer = process("cache", "--remove", "all", "--format", "json", XDG_CACHE_HOME=str(tmp_path / "cache"))
    document = json.loads(answer.stdout)
    jsonschema.validate(document, json.loads((ROOT / "docs" / "schemas" / "cache.schema.json").read_text()))
    assert document["removed_bytes"] >= 4096 and document["kinds"]["results"]["entries"] == 0
    assert not kept.exists()
    answer = process("cache", "--remove", "nothing", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "nothing is kept of the kind 'nothing'; expected all or one of results" in answer.stderr
