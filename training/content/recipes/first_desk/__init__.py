"""How the shipped checkpoint of First desk was made."""
