"""What the eye test has engine and trainer read: drawn screens, as pictures or as text."""
