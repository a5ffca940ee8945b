"""The env server: our desktops for trainers elsewhere, by three protocols on one port.

slime.py       the HTTP protocol of Slime-OSWorld's env server
areal.py       the API of AReaL's OSWorld remote_server
sandbox_calls.py bare sandboxes, the protocol that our own gateway provider speaks
"""
