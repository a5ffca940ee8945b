"""GUI-Owl: thoughts, a computer_use call and a conclusion, each in its tags."""
