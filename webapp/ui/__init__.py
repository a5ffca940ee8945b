"""Tags, filters and colours that the pages of all apps share."""
