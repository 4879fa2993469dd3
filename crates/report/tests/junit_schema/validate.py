"""Holds each file that is named against Ant's strict schema of JUnit results; says what is wrong with the first that does not fit."""

import sys
from importlib.resources import files

import xmlschema

schema = xmlschema.XMLSchema(str(files("ub_test_reports") / "schemas" / "JUnit.xsd"))
for path in sys.argv[1:]:
    error = next(schema.iter_errors(path), None)
    if error is not None:
        sys.exit(f"{path}: {error.reason} at {error.path}")
