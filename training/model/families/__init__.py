"""How the trainer and the engine run each family of models: one file per family behind one contract."""
