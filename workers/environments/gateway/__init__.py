"""Provider `gateway`: rented sandboxes of a cluster.

vendor_contract.py  what a cluster must offer: the Protocol that an SDK adapter implements
http_vendor.py      the reference implementation, HTTP with session and token headers
osworld_guest/      sandboxes that speak the protocol of OSWorld's in-guest server
desktop.py          a sandbox as a desktop: screen, input, files, commands, windows
sandbox_environment.py  one sandbox per trajectory
delete_unused_sandboxes.py   deletes our sandboxes that serve no trajectory
"""
