"""Trajectories as Parquet tables for programs that train elsewhere."""
