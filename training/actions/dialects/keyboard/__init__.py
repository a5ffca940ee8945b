"""The Windows example's: tags with the verbs of a keyboard."""
