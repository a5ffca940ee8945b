"""The action grammar: what a completion may say, and how a typed action is written as text."""
