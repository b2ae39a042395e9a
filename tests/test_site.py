"""The docs site: made of the results, readable without a network or its pictures."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("notebooks/*.md"))]
pages = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def results() -> ModuleType:
    """The script behind `make tables`."""
    spec = importlib.util.spec_from_file_location("results", DOCS / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_pages_are_fresh(results: ModuleType) -> None:
    texts = {name: (DOCS / name).read_text() for name in results.PAGES}
    assert "<!-- means of curiosity -->" in texts["experiments.md"]
    assert "<!-- lifetimes of lifetime -->" in texts["lifetime.md"]
    for name, text in texts.items():
        assert text == results.page(name), "run 'make tables'"


def test_a_table_replaces_nothing_but_itself(results: ModuleType) -> None:
    table = "<!-- means of figure1 -->\n{}\n<!-- end of the table -->\n"
    for before in ("", "\n| old |\n"):
        page = f"{table.format(before)}text\n{table.format(before)}"
        found = results.TABLE.sub(lambda _: "table\n", page)
        assert found == "table\n\ntext\ntable\n\n"


def test_the_results_page_is_fresh(results: ModuleType) -> None:
    assert (DOCS / "results.md").read_text() == results.results_page(), "run 'make tables'"


def test_the_readme_is_fresh(results: ModuleType) -> None:
    text = (ROOT / "README.md").read_text()
    assert results.TABLES.search(text)
    assert text == results.readme(), "run 'make tables'"


def test_the_interactive_pages_of_the_site_hold_every_figure(tmp_path: Path) -> None:
    code = "import conf, pathlib, sys; conf.write_pages(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=DOCS, check=True)
    for name, folder in (("report", "results"), ("report-absorbing", "results/absorbing")):
        page = (tmp_path / f"{name}.html").read_text()
        drawn = re.findall(r'<section class="figure" id="([^"]+)"', page)
        assert sorted(drawn) == sorted(
            path.parent.name for path in (ROOT / folder).glob("*/claims.json")
        )
        assert len(page) < 5_000_000


@pages
def test_pictures_have_text_alternatives(path: Path) -> None:
    text = path.read_text()
    for alternative in re.findall(r"!\[([^]]*)\]\(", text):
        assert len(alternative.split()) > 5
    for cell in re.findall(r"```{code-cell}.*?\n```", text, re.DOTALL):
        if re.search(r"plt\.show\(\)|^maps\(|^Image\(", cell, re.MULTILINE):
            assert re.search(r"^mystnb:\n  image:\n    alt: \w+ ", cell, re.MULTILINE)
    assert "{image}" not in text


def test_formulas_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    formulas = [
        formula for path in PAGES[1:] for formula in re.findall(r"\$([^$\n]+)\$", path.read_text())
    ]
    assert len(formulas) > 20
    (tmp_path / "index.md").write_text(
        "# Formulas\n\n" + "\n\n".join(f"${formula}$" for formula in formulas) + "\n\n$$x^2$$\n"
    )
    settings = {
        "extensions": ["myst_parser", "mathml"],
        "html_math_renderer": "mathml",
        "myst_enable_extensions": ["dollarmath"],
    }
    out = tmp_path / "html"
    Sphinx(
        tmp_path, None, out, tmp_path / "trees", "html", settings, status=None, warningiserror=True
    ).build()
    page = (out / "index.html").read_text()
    assert page.count('display="inline"') == len(formulas)
    assert page.count('display="block"') == 1
    assert not re.findall(r'(?:src|<link[^>]* href)="(?:https?:)?//', page)
    assert '"mathml"' in (DOCS / "conf.py").read_text()
    assert "mathjax" not in (DOCS / "conf.py").read_text()
