"""Rules of Deskhand's own."""
