"""Routes of live desktops and demonstrations."""

from django.urls import path

from webapp.screens import views

urlpatterns = [
    path("trajectories/<int:pk>/desktop/", views.show_desktop, name="desktop-show"),
    path("trajectories/<int:pk>/desktop/turns/", views.show_turns, name="desktop-turns"),
    path("trajectories/<int:pk>/desktop/checks/", views.show_checks, name="desktop-checks"),
    path("trajectories/<int:pk>/desktop/state/", views.show_state, name="desktop-state"),
    path("trajectories/<int:pk>/control/", views.take_control, name="control-take"),
    path("experiments/<int:pk>/hold/", views.hold_next, name="desktop-hold"),
    path("controls/<int:pk>/renew/", views.renew_control, name="control-renew"),
    path("controls/<int:pk>/hand-back/", views.hand_back, name="control-hand-back"),
    path("controls/<int:pk>/finish/", views.finish, name="control-finish"),
    path("demonstrate/", views.demonstrate, name="demonstration-start"),
]
