"""The layers in Postgres, which several processes and machines may share."""
