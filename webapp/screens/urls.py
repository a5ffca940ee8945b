"""Routes of live desktops, demonstrations and tasks that are made by doing them."""

from django.urls import path

from webapp.screens import draft_views, views

urlpatterns = [
    path("trajectories/<int:pk>/desktop/", views.show_desktop, name="desktop-show"),
    path("trajectories/<int:pk>/desktop/turns/", views.show_turns, name="desktop-turns"),
    path("trajectories/<int:pk>/desktop/checks/", views.show_checks, name="desktop-checks"),
    path("trajectories/<int:pk>/desktop/state/", views.show_state, name="desktop-state"),
    path("trajectories/<int:pk>/control/", views.take_control, name="control-take"),
    path("trajectories/<int:pk>/watch/", views.watch, name="desktop-watch"),
    path("experiments/<int:pk>/hold/", views.hold_next, name="desktop-hold"),
    path("controls/<int:pk>/renew/", views.renew_control, name="control-renew"),
    path("controls/<int:pk>/hand-back/", views.hand_back, name="control-hand-back"),
    path("controls/<int:pk>/finish/", views.finish, name="control-finish"),
    path("new-task/", draft_views.new_task, name="task-new"),
    path("trajectories/<int:pk>/draft/", draft_views.draft_panel, name="draft-panel"),
    path("trajectories/<int:pk>/draft/step/", draft_views.draft_step, name="draft-step"),
    path("demonstrate/", views.demonstrate, name="demonstration-start"),
]
