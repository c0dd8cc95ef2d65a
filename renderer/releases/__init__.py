"""What each product release accepts, as data.  A new release is one entry in one table."""
