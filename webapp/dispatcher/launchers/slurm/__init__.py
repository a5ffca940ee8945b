"""SLURM: `sbatch`, `squeue`, `scancel` and `scontrol` of the machine that the dispatcher runs on."""
