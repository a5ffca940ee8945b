"""Files of the desktop: reading, writing, listing, in OSWorld's words and as raw bytes."""

import errno
import os
import shutil

from workers.guest.files_inside import FilesByName, FilesInside
from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.session_layout import Layout

MAX_LISTED = 20_000
"""Entries of one answer; a listing of the whole system is a mistake."""
NO_FILE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR))
SPOILED = NO_FILE | {errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EFBIG}
"""What programs can make of a name: closed, a loop of links, a socket, too large. There is no answer then;
an error would have the trajectory run again instead of scored."""

OPENERS = (
    ((".doc", ".docx", ".odt", ".xls", ".xlsx", ".ods", ".ppt", ".pptx", ".odp", ".rtf"), "libreoffice"),
    ((".pdf",), "evince"),
    ((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"), "eog"),
    ((".mp3", ".mp4", ".mkv", ".avi", ".mov", ".webm", ".wav", ".ogg", ".flac"), "vlc"),
)


class FileRoutes:
    """Routes over the desktop's files."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        is_weak = "reading" in layout.weakened
        self.inside = FilesByName() if is_weak else FilesInside()
        self._no_file = NO_FILE if is_weak else SPOILED

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("POST", "/setup/upload"): self.upload,
            ("POST", "/file"): self.read_form_file,
            ("GET", "/file"): self.read_file,
            ("PUT", "/file"): self.write_file,
            ("POST", "/list_directory"): self.list_directory,
            ("POST", "/desktop_path"): self.desktop_path,
        }

    def path(self, text: str) -> str:
        """Absolute path; ~ and relative paths are in HOME. Raises HttpError 400."""
        if not text:
            raise HttpError(400, "path is empty")
        home = self.layout.home
        if text == "~" or text.startswith("~/"):
            text = home + text[1:]
        # OSWorld's tasks name /home/user; without a sandbox HOME is elsewhere.
        elif text.startswith("/home/user"):
            text = home + text.removeprefix("/home/user")
        return os.path.normpath(os.path.join(home, text))

    async def upload(self, request: Request) -> Response:
        """OSWorld's multipart upload: file_path, file_data."""
        fields = request.form()
        if "file_path" not in fields or "file_data" not in fields:
            raise HttpError(400, "file_path and file_data are needed")
        return self._store(self.path(fields["file_path"].decode().strip()), fields["file_data"])

    async def write_file(self, request: Request) -> Response:
        """PUT /file?path=... with the raw bytes; folders are made."""
        return self._store(self.path(request.query.get("path", "")), request.body)

    def _store(self, path: str, data: bytes) -> Response:
        self.inside.write(path, data)
        return json_response({"status": "success", "path": path, "bytes": len(data)})

    async def read_file(self, request: Request) -> Response:
        return self.fetch(self.path(request.query.get("path", "")))

    async def read_form_file(self, request: Request) -> Response:
        return self.fetch(self.path(request.form().get("file_path", b"").decode().strip()))

    def fetch(self, path: str, content_type: str = "application/octet-stream") -> Response:
        """A file's bytes. Raises HttpError 404."""
        try:
            return Response(self.inside.read(path), content_type=content_type)
        except OSError as exc:
            if exc.errno not in self._no_file:
                raise
            raise HttpError(404, f"no file {path} to be read: {exc.strerror}") from exc

    async def list_directory(self, request: Request) -> Response:
        """{"path": str} -> {"entries": names, kinds and sizes, "directory_tree": OSWorld's nested form}."""
        path = self.path(str(request.json().get("path", "")))
        if not self.inside.is_folder(path):
            raise HttpError(404, f"no folder {path}")
        entries = [
            {"name": name, "is_folder": is_folder, "bytes": size}
            for name, is_folder, size in self.inside.scan(path)
        ]
        tree = directory_tree(self.inside, path)
        return json_response({"entries": entries, "directory_tree": tree})

    async def desktop_path(self, _request: Request) -> Response:
        path = os.path.join(self.layout.home, "Desktop")
        if not self.inside.is_folder(path):
            raise HttpError(404, f"no folder {path}")
        return json_response({"desktop_path": path})


def directory_tree(files: FilesInside, path: str, room: "list[int] | None" = None) -> dict:
    """{"type", "name", "children"} of a folder, to its leaves; links are not followed. Raises HttpError."""
    room = [MAX_LISTED] if room is None else room
    children = []
    try:
        entries = files.scan(path)
    except PermissionError:
        entries = []
    for name, is_folder, _ in entries:
        room[0] -= 1
        if room[0] < 0:
            raise HttpError(400, f"more than {MAX_LISTED} entries; name a smaller folder")
        if is_folder:
            children.append(directory_tree(files, os.path.join(path, name), room))
        else:
            children.append({"type": "file", "name": name})
    return {"type": "directory", "name": os.path.basename(path), "children": children}


def program_for(path: str) -> str:
    """Which program opens a file: the one made for its kind, where it is installed."""
    made_for = (name for endings, name in OPENERS if path.lower().endswith(endings))
    return next(filter(shutil.which, made_for), "mousepad")
