"""The harbor framework's Agent Trajectory Interchange Format, version 1.7, both ways.

One document per trajectory, with its screenshots as files beside it. A line of our replay format becomes a
document and back without a loss; other programs' documents become lines as far as they say what was done.
"""
