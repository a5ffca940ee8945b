"""What the ranks of one trainer share: process group, sharding, agreed interrupts."""
