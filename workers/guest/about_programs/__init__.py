"""What holds for all programs of a desktop: where they are, and what they wait for."""
