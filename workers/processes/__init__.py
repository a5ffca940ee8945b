"""Child processes of workers: started, recorded, ended; unix sockets."""
