"""Where screenshots and other files of the installation lie: a folder, or a bucket of an S3 server."""
