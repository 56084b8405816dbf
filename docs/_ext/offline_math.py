"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, nothing to fetch.

The usual renderer asks another host for MathJax. docutils, which Sphinx stands on, turns LaTeX into MathML; what it
does not know of LaTeX, and our docstrings use, is written in what it knows first. A formula that it can't read is a
warning, so that the build fails rather than the page.
"""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

SAME = (
    (r"\\dots\b", r"\\ldots"),
    (r"\\[bB]ig+[lrm]?(?![a-zA-Z])\s*|\\textstyle\s*", ""),
    (r"\\([td]?frac)\s*(\d)\s*(\d)", r"\\\1{\2}{\3}"),
    (r"\\(log|exp)\s+(?=[a-zA-Z]|\\(?!left|frac))", r"\\\1\\, "),
)
"""LaTeX that docutils does not know or misreads, and the same in what it reads."""

ElementTree.register_namespace("", "http://www.w3.org/1998/Math/MathML")


def mathml(latex: str, *, block: bool) -> str:
    """The formula as an element `math`."""
    for pattern, other in SAME:
        latex = re.sub(pattern, other, latex)
    if block and "&" in latex and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return _with_indices_beside_accents(tex2mathml(latex, as_block=block))


def _with_indices_beside_accents(formula: str) -> str:
    """docutils puts the index of a letter with an accent below it, as that of a sum."""
    root = ElementTree.fromstring(formula.replace("&ApplyFunction;", "\N{FUNCTION APPLICATION}"))
    for element in root.findall(".//{*}munderover"):
        letter, index, accent = element
        if accent.get("stretchy") == "false":
            element[:] = []
            with_accent = ElementTree.SubElement(element, element.tag.replace("munderover", "mover"), accent="true")
            with_accent.extend((letter, accent))
            element.append(index)
            element.tag = element.tag.replace("munderover", "msub")
    return ElementTree.tostring(root, encoding="unicode")


def _draw(translator: HTML5Translator, node: nodes.Element, *, block: bool) -> None:
    try:
        formula = mathml(node.astext(), block=block)
    except (MathError, ElementTree.ParseError, AttributeError) as problem:
        logging.getLogger(__name__).warning("no MathML for %r: %s", node.astext(), problem, location=node)
        formula = f"<code>{translator.encode(node.astext())}</code>"
    tag = "div" if block else "span"
    translator.body.append(f'<{tag} class="math notranslate nohighlight">{formula}</{tag}>')
    raise nodes.SkipNode


def draw_inline(translator: HTML5Translator, node: nodes.math) -> None:
    _draw(translator, node, block=False)


def draw_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    _draw(translator, node, block=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_html_math_renderer("mathml", inline_renderers=(draw_inline, None), block_renderers=(draw_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
