"""All that workers report and request: called by those of this machine, served over HTTPS to joined hosts.

Each function is a call (`lib/remote_calls.py`) and speaks ids and plain types, no database rows.
"""
