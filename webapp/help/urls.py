"""Routes of the documentation."""

from django.urls import path, re_path

from webapp.help import views

urlpatterns = [
    path("help/", views.show_front, name="help-show"),
    path("help/search/", views.show_search, name="help-search"),
    re_path(r"^help/(?P<name>(?:_images|_downloads)/[^\x00]+)$", views.show_file, name="help-file"),
    re_path(r"^help/(?P<name>[\w./-]+)/$", views.show_page, name="help-page"),
]
