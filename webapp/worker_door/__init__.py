"""All that workers tell and ask: called by those of this machine, served over HTTPS to joined hosts.

Each function is a row of the contract (`rows.py`) and speaks ids and plain types, no database rows.
"""
