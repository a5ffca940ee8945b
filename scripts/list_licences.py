"""Write docs/licences.md anew: the licence of every package that Deskhand installs, as it names it itself.

.venv/bin/python scripts/list_licences.py        after a change of requirements/*.txt or package.json
"""

import json
import sys
from importlib.metadata import PackageMetadata, metadata

from requirement_files import REQUIREMENTS, pins_of

PAGE = REQUIREMENTS.parent / "docs" / "licences.md"
ALLOWED = (
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "CNRI-Python",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
    ),
    *(
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
        "LGPL-2.1-only",
        "LGPL-2.1-or-later",
    ),
    *("LGPL-3.0-only", "LGPL-3.0-or-later", "LGPL-2.0-only", "LGPL-2.0-or-later"),
)
"""SPDX names that may be installed beside an Apache-2.0 program."""
SPELLINGS = {
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-2.1-or-later",
    "LGPLv3": "LGPL-3.0-only",
}
EXCEPTIONS = {
    "docutils": "GPL is a mode for Emacs, which its package on PyPI does not have",
    "qemu-qmp": "GPL-2.0 is its module `legacy`, which nothing of ours imports",
}
"""Package -> why another licence than the allowed ones is no obstacle."""
HEAD = """# Licences of what Deskhand installs
Written by `scripts/list_licences.py` from what each package says of itself; a test keeps the page current and
refuses an unknown licence. Deskhand itself is Apache-2.0. With an NVIDIA GPU torch brings NVIDIA's
libraries along, under NVIDIA's own terms.

| package | version | licence |
|---|---|---|
"""


def main() -> int:
    PAGE.write_text(page())
    return 0


def page() -> str:
    """The whole document."""
    rows = [*python_rows(), *npm_rows()]
    return HEAD + "".join(f"| {name} | {version} | {licence} |\n" for name, version, licence in rows)


def python_rows() -> list[tuple[str, str, str]]:
    """(package, version, licence) of requirements/base.txt and docs.txt."""
    pins = pins_of("base") | pins_of("docs")
    return [(name, version, licence_of(metadata(name))) for name, version in sorted(pins.items())]


def npm_rows() -> list[tuple[str, str, str]]:
    """The same of package-lock.json, without what only tests use."""
    lock = json.loads((REQUIREMENTS.parent / "package-lock.json").read_text())
    rows = {path.rpartition("node_modules/")[2]: row for path, row in lock["packages"].items() if path}
    return [
        (f"{name} (npm)", row["version"], row["license"])
        for name, row in sorted(rows.items())
        if not row.get("dev")
    ]


def licence_of(package: PackageMetadata) -> str:
    """SPDX expression where the package has one, else what its classifiers or its own words stand for."""
    if expression := package.get("License-Expression"):
        return expression
    kinds = [
        text.rpartition(" :: ")[2]
        for text in package.get_all("Classifier", [])
        if text.startswith("License ::")
    ]
    kinds = [kind for kind in kinds if kind != "OSI Approved"]
    words = kinds or [(package.get("License") or "none named").splitlines()[0]]
    return " AND ".join(sorted({SPELLINGS.get(word, word) for word in words}))


def unknown(licence: str) -> list[str]:
    """Names in an expression that ALLOWED does not list."""
    words = licence.replace("(", " ").replace(")", " ").split()
    return [word for word in words if word not in (*ALLOWED, "AND", "OR", "WITH", "LLVM-exception")]


if __name__ == "__main__":
    sys.exit(main())
