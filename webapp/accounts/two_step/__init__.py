"""Two-step sign-in: the code of an authenticator app besides the password, as an option of each person."""
