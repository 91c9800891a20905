"""HTML by construction: what is put in as text comes out as text, whatever it holds."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

from vramdoc.render.style import clean

Child = Element | str

__all__ = ["Child", "Element", "element", "section", "to_html"]


def element(tag: str, *children: Child, **attributes: str) -> Element:
    """``<tag>`` with ``children``; ``class_`` and ``aria_label`` stand for names that Python cannot spell.

    Attributes that are empty are left out. The text of a ``style`` element is written as it is.
    """
    made = Element(tag, {_attribute(name): clean(value) for name, value in attributes.items() if value})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
            continue
        text = child if tag == "style" else clean(child)
        if last is None:
            made.text = (made.text or "") + text
        else:
            last.tail = (last.tail or "") + text
    return made


def section(title: str, detail: str, *children: Child) -> Element:
    """A titled part of the page."""
    heading = element("h2", title, *([element("small", detail)] if detail else []))
    return element("section", heading, *children)


def to_html(root: Element) -> str:
    """The text of ``root``."""
    return tostring(root, encoding="unicode", method="html")


def _attribute(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")
