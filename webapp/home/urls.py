"""Routes of the first page and of what Ctrl+K finds."""

from django.urls import path

from webapp.home import views

urlpatterns = [
    path("", views.show_home, name="home"),
    path("home/needs/", views.show_needs, name="home-needs"),
    path("find/", views.find_anything, name="find"),
]
