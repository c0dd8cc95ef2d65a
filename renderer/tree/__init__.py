"""The work tree on disk: read, compared with what was rendered, and written in whole files."""
