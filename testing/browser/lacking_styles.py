"""Which rules of a whole stylesheet an open page could use, but was not served."""

from pathlib import Path

from playwright.sync_api import Page

LACKING = r"""([whole, name]) => {
    const selectorsOf = (text) => text.match(/(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+/g) ?? [];
    const all = (rules, around = "") => [...rules].flatMap((rule) => {
        const { selectorText, conditionText, cssRules, style } = rule;
        if (selectorText) return selectorsOf(selectorText).map((one) => [one.trim(), around, style.cssText]);
        return conditionText ? all(cssRules, around + conditionText) : [];
    });
    const served = [...document.styleSheets].find(({ href }) => href?.endsWith(name));
    const known = new Set(all(served.cssRules).map((one) => one.join(" | ")));
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(whole);
    const isUsed = (selector) => {
        const named = selector.replace(/(?<!\\)::?[\w-]+(\((?:[^()]|\([^()]*\))*\))?/g, "");
        const plain = named.replace(/(^|[>+~])\s*(?=[>+~]|$)/g, "$1 * ");
        const isOurs = (element) => !element.closest(".js-plotly-plot");
        try { return [...document.querySelectorAll(plain)].some(isOurs); } catch { return true; }
    };
    const lacking = all(sheet.cssRules).filter((one) => !known.has(one.join(" | ")));
    return lacking.map(([selector]) => selector).filter(isUsed);
}"""
"""Pseudo-classes are left out of a selector: an element may be hovered or checked later. Plotly brings
its own styles for classes that have the same names."""


def lacking_styles(page: Page, whole: Path) -> list[str]:
    """Selectors of `whole` that fit an element of the page and are not in the served one of its name."""
    return page.evaluate(LACKING, [whole.read_text(), whole.name])
