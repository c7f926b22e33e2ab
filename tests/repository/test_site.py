"""`make site`: the pages build with search and without a warning; a link that leads nowhere ends the build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repository.tree import BIN, ROOT

CONFIGURATION = ROOT / "docs" / "site"


def _build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    words = [str(BIN / "sphinx-build"), "-q", "-W", "-c", str(CONFIGURATION), "-d", str(target / "cache")]
    return subprocess.run(
        [*words, str(source), str(target / "site")], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the repository's pages."""
    target = tmp_path_factory.mktemp("site")
    built = _build(ROOT, target)
    assert built.returncode == 0, built.stderr
    return target / "site"


def test_the_site_has_search_and_begins_with_the_index(site: Path) -> None:
    assert "url=docs/index.html" in (site / "index.html").read_text()
    assert "refcach" in (site / "searchindex.js").read_text()  # the stem of "refcache"
    assert (site / "search.html").exists()


def test_every_page_is_in_the_sidebar(site: Path) -> None:
    index = (site / "docs" / "index.html").read_text()
    sidebar = index[index.index("sidebar-tree") : index.index("</aside>")]
    pages = [page.relative_to(site / "docs") for page in (site / "docs").rglob("*.html")]
    assert len(pages) > 20
    assert not [page for page in pages if str(page) != "index.html" and f'href="{page}"' not in sidebar]


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "docs" / "guides").mkdir(parents=True)
    (source / "docs" / "index.md").write_text("# Pages\n\n## Guides\n- [one](guides/one.md)\n")
    (source / "docs" / "guides" / "one.md").write_text("# One\n\n[nowhere](two.md)\n")
    built = _build(source, tmp_path / "target")
    assert built.returncode != 0
    assert "two.md" in built.stderr
    shutil.rmtree(tmp_path / "target")
    (source / "docs" / "guides" / "one.md").write_text("# One\n\n[back](../index.md)\n")
    assert _build(source, tmp_path / "target").returncode == 0
