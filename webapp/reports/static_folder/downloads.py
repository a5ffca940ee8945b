"""Downloads of static folders."""

from django.http import StreamingHttpResponse
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.reports.static_folder.folders import (
    StaticFolder,
    folder_of_group,
    folder_of_trajectory,
)
from webapp.trajectories.access import get_group, get_trajectory


@require_safe
def trajectory_folder(request: MemberRequest, pk: int) -> StreamingHttpResponse:
    """A trajectory as a .zip that opens without a server."""
    trajectory = get_trajectory(request, pk)
    return _sent(request, folder_of_trajectory(trajectory), trajectory.team_id, "trajectory", pk)


@require_safe
def group_folder(request: MemberRequest, pk: int) -> StreamingHttpResponse:
    group = get_group(request, pk)
    return _sent(request, folder_of_group(group), group.team_id, "group", pk)


def _sent(
    request: MemberRequest, folder: StaticFolder, team: int, kind: str, pk: int
) -> StreamingHttpResponse:
    """What leaves the installation is in the audit log."""
    log_action(AuditAction.EXPORTED, person=request.user, team=team, kind=kind, object_id=pk, form="folder")
    return folder.response()
