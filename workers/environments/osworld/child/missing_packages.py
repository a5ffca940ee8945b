"""Stand-ins for packages that are not installed.

Importing DesktopEnv imports what any of its 150 evaluators may need, up to torch. A missing package
becomes a stand-in that can be imported; using it raises ImportError and is remembered, because many
evaluators answer 0 to every exception, and a missing package must never become a score.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, NoReturn

PACKAGES = {
    "bs4": "beautifulsoup4",
    "docx": "python-docx",
    "fitz": "pymupdf",
    "formulas": "formulas",
    "odf": "odfpy",
    "openpyxl": "openpyxl",
    "pandas": "pandas",
    "pdfplumber": "pdfplumber",
    "pptx": "python-pptx",
    "pypdf": "pypdf",
    "PyPDF2": "PyPDF2",
    "pymupdf": "pymupdf",
    "rapidfuzz": "rapidfuzz",
    "tldextract": "tldextract",
    "xmltodict": "xmltodict",
    "acoustid": "pyacoustid",
    "borb": "borb",
    "cv2": "opencv-python-headless",
    "docker": "docker",
    "easyocr": "easyocr",
    "fastdtw": "fastdtw",
    "filelock": "filelock",
    "imagehash": "ImageHash",
    "librosa": "librosa",
    "mutagen": "mutagen",
    "playwright": "playwright",
    "psutil": "psutil",
    "pydrive": "PyDrive",
    "scipy": "scipy",
    "skimage": "scikit-image",
    "tqdm": "tqdm",
}
"""Module -> its name on PyPI."""

used: list[str] = []
"""Missing packages that were needed since this was last cleared."""


class Missing:
    """A name of a package that is not installed."""

    def __init__(self, path: object, *_: object) -> None:
        self.path = str(path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.path}.{name}")

    def _need(self, *_: object, **__: object) -> NoReturn:
        package = package_of(self)
        used.append(package)
        raise ImportError(f"{self.path} needs the package {package}, which is not installed")

    __call__ = __iter__ = __getitem__ = __len__ = __enter__ = __instancecheck__ = _need


class MissingModule(types.ModuleType):
    """A module of a package that is not installed."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last on sys.meta_path: answers for the packages of the table that are not installed."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        root = name.partition(".")[0]
        if root not in PACKAGES or not isinstance(sys.modules.get(root), MissingModule | None):
            return None  # an installed package may look for parts that it does not have
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return MissingModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install() -> None:
    """From now on missing packages of the table can be imported."""
    sys.meta_path.append(Finder())  # type: ignore[arg-type]


def package_of(value: object) -> str:
    """PyPI name of the missing package that a global belongs to; "" when it is there."""
    if isinstance(value, MissingModule):
        path = value.__name__
    elif isinstance(value, Missing):
        path = value.path
    else:
        return ""
    root = path.partition(".")[0]
    return PACKAGES.get(root, root)
