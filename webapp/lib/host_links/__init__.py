"""What connects hosts: addresses, certificates, and what a joined host keeps of its installation."""
