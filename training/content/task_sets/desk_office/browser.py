"""Jobs in Chromium on local pages: press, follow, look up, fill in, keep and fetch.

Each page says in its title what was done to it, so the window's title is what evaluators read.
"""

import random
from typing import Any

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    PEOPLE,
    REST,
    TOPICS,
    all_of,
    click,
    command_says,
    json_holds,
    kind,
    wait_for_window,
    window_in_front,
    word,
    words,
)
from training.content.task_sets.steps_and_evaluators import DONE, press_keys, setup_step, type_text
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

PAGES = f"{HOME}/pages"
BROWSER = (
    "chromium", "--no-sandbox", "--test-type", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    "--password-store=basic", "--window-position=0,0", "--window-size=1024,768",
)  # fmt: skip
"""No sandbox of its own: the desktop is one. --test-type hides its warning of that."""
STYLE = "body{margin:0;background:#fdf6e3;font:16px sans-serif}main{position:absolute;left:40px;top:20px}"
BODY = "#fdf6e3"
TOP = 97
"""Pixels above the page."""
ENTER, TAB = press_keys("Return"), press_keys("Tab")


def page(title: str, body: str, script: str = "") -> str:
    """One page; `said(text)` in its script changes its title."""
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
        f"<main><h1>{title}</h1>{body}</main>"
        f"<script>function said(text){{document.title=text}}{script}</script>\n"
    )


def open_browser(title: str, **pages: str) -> tuple[dict[str, Any], ...]:
    """Set-up steps: the browser on the first of these pages, which has this title."""
    first = next(iter(pages))
    return (
        *(
            setup_step("write_file", path=f"{PAGES}/{name}.html", content=text)
            for name, text in pages.items()
        ),
        setup_step("launch", command=[*BROWSER, f"{PAGES}/{first}.html"]),
        *wait_for_window(title),
        setup_step("wait_color", x=900, y=700, color=BODY),
    )


def press(rng: random.Random, split: Split) -> Problem:
    names = words(rng, split, CITIES, 4)
    place = rng.randrange(4)
    buttons = "".join(
        f"<button style='position:absolute;left:0;top:{80 + 70 * row}px;width:240px;height:50px'"
        f" onclick=\"said('Flight to {name} chosen')\">{name}</button>"
        for row, name in enumerate(names)
    )
    return Problem(
        instruction=f"Choose the flight to {names[place]}.",
        config=open_browser("Flights", flights=page("Flights", buttons)),
        evaluator=window_in_front(f"Flight to {names[place]} chosen"),
        actions=(click(160, TOP + 20 + 80 + 70 * place + 25), DONE),
    )


def _form(fields: str, said: str) -> str:
    """A form whose first field has the keyboard; `said` is a JavaScript expression over its fields `f`."""
    return (
        f"<form onsubmit=\"const f=this.elements;said({said});return false\" style='line-height:2.6'>"
        f"{fields}<button>Send</button></form>"
    )


def _field(name: str, label: str, *, first: bool = False) -> str:
    return f"<label>{label} <input name={name} {'autofocus' * first}></label><br>"


def fill(rng: random.Random, split: Split) -> Problem:
    person, city, number = word(rng, split, PEOPLE), word(rng, split, CITIES), rng.randint(2, 9)
    fields = _field("who", "Name", first=True) + _field("city", "City") + _field("num", "Seats")
    body = _form(fields, "`${f.who.value} books ${f.num.value} seats to ${f.city.value}`")
    return Problem(
        instruction=f"Book {number} seats to {city} for {person} with the form, and send it.",
        config=open_browser("Booking", booking=page("Booking", body)),
        evaluator=window_in_front(f"{person} books {number} seats to {city}"),
        actions=(type_text(person), TAB, type_text(city), TAB, type_text(str(number)), ENTER, DONE),
    )


def choose(rng: random.Random, split: Split) -> Problem:
    goods, number = sorted(words(rng, split, GOODS, 4)), rng.randrange(1, 4)
    wrapped = rng.random() < 0.5
    options = "".join(f"<option>{name}" for name in goods)
    fields = (
        f"<label>Article <select name=what autofocus>{options}</select></label><br>"
        "<label><input type=checkbox name=gift> Wrap as a gift</label><br>"
        "<label><input type=radio name=way value=post checked> By post</label>"
        "<label><input type=radio name=way value=van> By van</label><br>"
    )
    body = _form(fields, "`${f.what.value} by ${f.way.value}${f.gift.checked?', wrapped':', plain'}`")
    gift = (press_keys("space"),) if wrapped else ()
    return Problem(
        instruction=(
            f"Order {goods[number]} by van, {'wrapped as a gift' if wrapped else 'not wrapped'}. "
            "Send the form."
        ),
        config=open_browser("Shop", shop=page("Shop", body)),
        evaluator=window_in_front(f"{goods[number]} by van, {'wrapped' if wrapped else 'plain'}"),
        actions=(
            type_text(goods[number][:4]),
            TAB,
            *gift,
            TAB,
            press_keys("Right"),
            TAB,
            ENTER,
            DONE,
        ),
    )


def _links(names: list[str]) -> str:
    return "".join(f"<p><a href='{name}.html'>{name.capitalize()}</a></p>" for name in names)


def follow(rng: random.Random, split: Split) -> Problem:
    names = words(rng, split, TOPICS, 3)
    pages = {name: page(f"All about {name}", "<p>You are here.</p>") for name in names}
    row = rng.randrange(3)
    return Problem(
        instruction=f"Open the page about {names[row]} by its link.",
        config=open_browser("Contents", contents=page("Contents", _links(names)), **pages),
        evaluator=window_in_front(f"All about {names[row]}"),
        actions=(*(TAB,) * (row + 1), ENTER, DONE),
    )


def price_table(prices: dict[str, int]) -> str:
    rows = "".join(f"<tr><td>{name}<td>{price} EUR" for name, price in prices.items())
    return f"<table cellpadding=6>{rows}</table>"


def prices_of(rng: random.Random, split: Split, number: int) -> dict[str, int]:
    """Different prices of a number of goods."""
    return dict(zip(words(rng, split, GOODS, number), rng.sample(range(11, 99), number), strict=True))


def look_up(rng: random.Random, split: Split) -> Problem:
    prices = prices_of(rng, split, 4)
    name = rng.choice(list(prices))
    body = price_table(prices) + _form(_field("price", "Price", first=True), "`Price ${f.price.value} sent`")
    return Problem(
        instruction=f"Look up what {name} cost and send that number with the form.",
        config=open_browser("Prices", prices=page("Prices", body)),
        evaluator=window_in_front(f"Price {prices[name]} sent"),
        actions=(type_text(str(prices[name])), ENTER, DONE),
    )


def cheapest(rng: random.Random, split: Split) -> Problem:
    prices = prices_of(rng, split, 4)
    name = min(prices, key=lambda good: prices[good])
    row, city = list(prices).index(name), word(rng, split, CITIES)
    buttons = "".join(
        f"<p>{good}: {price} EUR <button onclick=\"said('{good} in the basket')\">Buy</button></p>"
        for good, price in prices.items()
    )
    return Problem(
        instruction=f"Buy the cheapest article of the shop in {city}.",
        config=open_browser(f"Shop in {city}", shop=page(f"Shop in {city}", buttons)),
        evaluator=window_in_front(f"{name} in the basket"),
        actions=(*(TAB,) * (row + 1), ENTER, DONE),
    )


def carry_over(rng: random.Random, split: Split) -> Problem:
    """A number of one page goes into the form of another."""
    topic, code = word(rng, split, TOPICS), str(rng.randint(1000, 9999))
    start = page("Start", _links([topic]) + "<p><a href='form.html'>Form</a></p>")
    form = page("Form", _form(_field("code", "Code", first=True), "`Code ${f.code.value} accepted`"))
    other = page(f"All about {topic}", f"<p>The code is {code}.</p>")
    back = press_keys("alt", "Left")
    return Problem(
        instruction=f"The page about {topic} names a code. Send this code with the form.",
        config=open_browser("Start", start=start, form=form, **{topic: other}),
        evaluator=window_in_front(f"Code {code} accepted"),
        actions=(TAB, ENTER, back, TAB, TAB, ENTER, type_text(code), ENTER, DONE),
    )


def bookmark(rng: random.Random, split: Split) -> Problem:
    """In either of the browser's folders."""
    topic = word(rng, split, TOPICS).capitalize()
    getter = {"type": "vm_file", "path": f"{HOME}/.config/chromium/Default/Bookmarks", "dest": "Bookmarks"}
    url = f"file://{PAGES}/{topic.lower()}.html"
    folders: list[list[str | int]] = [["roots", name, "children", 0] for name in ("bookmark_bar", "other")]
    either = all_of(
        *(json_holds(getter, ([*first, "name"], topic), ([*first, "url"], url)) for first in folders)
    )
    return Problem(
        instruction=f"Bookmark the page {topic}.",
        config=open_browser(topic, **{topic.lower(): page(topic, "<p>Worth keeping.</p>")}),
        evaluator=either | {"conj": "or"},
        actions=(press_keys("ctrl", "d"), REST, ENTER, DONE),
    )


def download(rng: random.Random, split: Split) -> Problem:
    topic, city = word(rng, split, TOPICS), word(rng, split, CITIES)
    body = (
        "<p>Two lists:</p>"
        f"<p><a download='{topic}.csv' href='data:text/csv,{city},{len(city)}%0A'>{topic}.csv</a></p>"
        "<p><a download='old.csv' href='data:text/csv,old%0A'>old.csv</a></p>"
    )
    return Problem(
        instruction=f"Download {topic}.csv.",
        config=open_browser("Lists", lists=page("Lists", body)),
        evaluator=command_says(f"cat {HOME}/Downloads/{topic}.csv 2>/dev/null", f"{city},{len(city)}\n", 5.0),
        actions=(TAB, ENTER, DONE),
    )


def new_tab(rng: random.Random, split: Split) -> Problem:
    one, two = words(rng, split, TOPICS, 2)
    pages = {name: page(name.capitalize(), "<p>You are here.</p>") for name in (one, two)}
    keys: tuple[Action, ...] = (
        press_keys("ctrl", "t"),
        press_keys("ctrl", "l"),
        type_text(f"file://{PAGES}/{two}.html"),
        ENTER,
    )
    return Problem(
        instruction=f"Open the file {PAGES}/{two}.html in a second tab.",
        config=open_browser(one.capitalize(), **pages),
        evaluator=window_in_front(f"{two.capitalize()} - Chromium"),
        actions=(*keys, DONE),
    )


KINDS = (
    kind("browser/press", 1, press),
    kind("browser/bookmark", 2, bookmark),
    kind("browser/download", 1, download),
    kind("browser/follow", 2, follow),
    kind("browser/look-up", 1, look_up),
    kind("browser/cheapest", 2, cheapest),
    kind("browser/new-tab", 2, new_tab),
    kind("browser/fill", 3, fill),
    kind("browser/choose", 3, choose),
    kind("browser/carry-over", 3, carry_over),
)
