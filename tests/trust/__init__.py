"""The long tests of `make trust`, a module for each row; `make test` runs them with small sizes."""
