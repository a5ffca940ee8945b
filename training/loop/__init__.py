"""The trainer's main program and the stages of an experiment."""
