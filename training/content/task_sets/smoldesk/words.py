"""The words of smoldesk: one list for each split, with no word in two of them."""

from dataclasses import dataclass

KEYS = (("ctrl", "s"), ("ctrl", "a"), ("F2",), ("Return",), ("Escape",), ("Delete",))
"""Of literal tasks; the same in every split."""
ORDERS = (
    ("cheapest", "dearest", "{} euros"),
    ("lightest", "heaviest", "{} kg"),
    ("smallest", "largest", "{} MB"),
)


@dataclass(frozen=True, slots=True)
class Words:
    """The names of one split's widgets, and what is written into them."""

    buttons: tuple[str, ...]
    fields: tuple[str, ...]
    values: tuple[str, ...]
    switches: tuple[str, ...]
    items: tuple[str, ...]
    files: tuple[str, ...]
    endings: tuple[str, ...]
    windows: tuple[str, ...]
    programs: tuple[str, ...]
    things: tuple[str, ...]
    remainders: tuple[int, ...]
    """Of its numbers, divided by 7."""


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


TRAIN = Words(
    buttons=_list(
        "Save, Submit, Apply, Close, Print, Share, Export, Refresh, Next, Back, Open, Upload, Accept"
    ),
    fields=_list("City, Name, Email, Phone, Country, Company, Street, Language, Team, Title"),
    values=_list(
        "Berlin, Paris, Alice, Madrid, Lisbon, violet, Oxford, Martha, Dublin, copper, Naples, garden"
    ),
    switches=_list("Bluetooth, Wi-Fi, Notifications, Dark mode, Location, Sync, Backup, Captions"),
    items=_list("Lamp, Chair, Table, Mirror, Carpet, Shelf, Clock, Vase, Pillow, Basket, Bench, Kettle"),
    files=_list("report, notes, budget, photo, letter, invoice, draft, plan, summary, recipe"),
    endings=_list(".txt, .pdf, .csv"),
    windows=_list("Settings, Editor, Account, Profile, Details, Console"),
    programs=_list("Mail, Orders, Browser, Ledger"),
    things=_list("invoice, order, customer, ticket"),
    remainders=(1, 2, 3, 4, 5),
)
HELDOUT = Words(
    buttons=_list(
        "Send, Publish, Confirm, Reset, Download, Archive, Preview, Restart, Install, Continue, Finish, Merge"
    ),
    fields=_list("Region, Surname, Subject, Department, Postcode, Author, Address, Category"),
    values=_list(
        "Vienna, Oslo, Gloria, Prague, Geneva, orange, Boston, Ingrid, Krakow, silver, Venice, forest"
    ),
    switches=_list("Airplane mode, Autosave, Spell check, Sounds, Night light, Telemetry, Autoplay, Hotspot"),
    items=_list(
        "Desk, Sofa, Stove, Fridge, Heater, Ladder, Drill, Hammer, Blanket, Teapot, Wardrobe, Mattress"
    ),
    files=_list("essay, minutes, agenda, contract, poster, thesis, memo, journal, script, outline"),
    endings=_list(".md, .docx, .json"),
    windows=_list("Preferences, Composer, Registry, Workspace, Options, Monitor"),
    programs=_list("Chat, Calendar, Notebook, Shop"),
    things=_list("parcel, booking, member, loan"),
    remainders=(0,),
)
CHOICE = Words(
    buttons=_list(
        "Create, Discard, Verify, Insert, Collect, Replace, Attach, Launch, Rotate, Divide, Forward, Clear"
    ),
    fields=_list("Village, Nickname, Website, Branch, Room, Sender, Floor, Colour"),
    values=_list(
        "Zurich, Milan, Helena, Warsaw, Athens, purple, Seville, Agnes, Bremen, bronze, Verona, meadow"
    ),
    switches=_list("Bold text, Firewall, Printing, Vibration, Shuffle, Subtitles, Roaming, Metering"),
    items=_list("Stool, Couch, Oven, Freezer, Toaster, Saw, Bucket, Towel, Candle, Trolley, Cabinet, Hanger"),
    files=_list("speech, diary, lyrics, ledger, sketch, survey, roster, digest, novel, manual"),
    endings=_list(".odt, .xml, .tex"),
    windows=_list("Controls, Studio, Members, Toolbox, Form, Panel"),
    programs=_list("Radio, Planner, Atlas, Market"),
    things=_list("voucher, flight, tenant, repair"),
    remainders=(6,),
)
