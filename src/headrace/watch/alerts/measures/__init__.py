"""What each kind of rule looks at. A measure says what it found, or raises what kept it from looking: that is missing data."""
