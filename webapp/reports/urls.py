"""Routes of reports; those below `r/` need no account."""

from django.urls import path, re_path

from webapp.reports import live_exports, public_views, views
from webapp.reports.by_domain import osworld_results
from webapp.reports.by_domain import views as by_domain
from webapp.reports.static_folder import downloads as static_folder

PICTURE = r"(?P<sha256>[0-9a-f]{64})\.jpg$"
EXPORT = r"(?P<key>(?:chart|table)-\d{1,3})\.(?P<kind>csv|tex)$"
VERSION = r"^reports/(?P<pk>[0-9]{1,18})/v/(?P<number>[0-9]{1,6})/"
TOKEN = r"^r/(?P<token>[A-Za-z0-9._~-]{1,120})/"

urlpatterns = [
    path("exports/<slug:kind>/", live_exports.export_shown, name="export-shown"),
    path("experiments/domains/", by_domain.success_by_domain, name="success-by-domain"),
    path("evaluations/<int:pk>/osworld/", osworld_results.osworld_results, name="osworld-results"),
    path("reports/", views.report_list, name="report-list"),
    path("reports/new/", views.new_report, name="report-new"),
    path("reports/<int:pk>/", views.report_detail, name="report-detail"),
    path("reports/<int:pk>/delete/", views.delete, name="report-delete"),
    path("reports/<int:pk>/new/", views.new_version, name="report-new-version"),
    path("reports/<int:pk>/v/<int:number>/", views.report_detail, name="report-version"),
    path("reports/<int:pk>/v/<int:number>/links/", views.create_link, name="report-link-create"),
    path("reports/<int:pk>/links/<int:link_pk>/revoke/", views.revoke_link, name="report-link-revoke"),
    path("trajectories/<int:pk>/folder/", static_folder.trajectory_folder, name="trajectory-folder"),
    path("groups/<int:pk>/folder/", static_folder.group_folder, name="group-folder"),
    re_path(VERSION + PICTURE, views.report_picture, name="report-picture"),
    re_path(VERSION + EXPORT, views.report_export, name="report-export"),
    re_path(TOKEN + "$", public_views.show_report, name="public-report"),
    re_path(TOKEN + PICTURE, public_views.show_picture, name="public-report-picture"),
    re_path(TOKEN + EXPORT, public_views.show_export, name="public-report-export"),
]
