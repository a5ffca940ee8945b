"""Files of screenshots, in a folder or a bucket: stored once, renewed when stored again, read, deleted."""

from webapp.lib.media.media_files import bucket, is_bucket
from webapp.trajectories.frame_files.contract import FrameFiles
from webapp.trajectories.frame_files.in_bucket import BucketFrames
from webapp.trajectories.frame_files.in_folder import FolderFrames
from webapp.trajectories.frame_files.names import frame_path


def frame_files() -> FrameFiles:
    """As the installation's settings say."""
    return BucketFrames(bucket()) if is_bucket() else FolderFrames()


def read_frame(sha256: str, variant: str = "png") -> bytes:
    """The file's bytes. Raises FileNotFoundError, StorageAway."""
    return frame_files().read(frame_path(sha256, variant))
