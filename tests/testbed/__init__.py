"""The real servers that tests run against: built from their Go modules, started on loopback."""
