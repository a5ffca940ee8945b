"""Typed actions as text, the inverse of `training.actions.parse`; one dialect per module.

What a dialect cannot say raises ValueError: a part of an action is never left out.
"""
