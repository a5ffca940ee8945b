"""What a Windows guest needs around the virtual machine: its agent's protocol, discs, and its state."""
