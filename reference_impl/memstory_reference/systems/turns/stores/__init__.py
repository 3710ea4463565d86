"""Where turns are kept: in files of this machine, or in Postgres."""
