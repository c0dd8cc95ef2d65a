"""The work tree on disk: read without following links out, compared with what was rendered, and written in whole files."""
