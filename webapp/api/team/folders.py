"""Folders as .zip: pages that open without a server, and results in the layout of OSWorld's own runs."""

from django.http import HttpResponseBase
from ninja import Router

from webapp.accounts.access import MemberRequest
from webapp.api.binary import binary_answer
from webapp.reports.by_domain.osworld_results import osworld_results
from webapp.reports.static_folder import downloads

router = Router(tags=["trajectories"])
ZIP = binary_answer("application/zip")


@router.get("/trajectories/{int:pk}/folder", operation_id="export_trajectory_folder", **ZIP)
def export_trajectory_folder(request: MemberRequest, pk: int) -> HttpResponseBase:
    """Its screens and turns as a page with its pictures, in a .zip."""
    return downloads.trajectory_folder(request, pk)


@router.get("/groups/{int:pk}/folder", operation_id="export_group_folder", **ZIP)
def export_group_folder(request: MemberRequest, pk: int) -> HttpResponseBase:
    """A group and a page for each of its members, in a .zip."""
    return downloads.group_folder(request, pk)


@router.get("/evaluations/{int:pk}/osworld", operation_id="export_osworld_results", **ZIP)
def export_osworld_results(request: MemberRequest, pk: int) -> HttpResponseBase:
    """The episodes of an evaluation: traj.jsonl, result.txt and screenshots by domain and task, in a .zip."""
    return osworld_results(request, pk)
