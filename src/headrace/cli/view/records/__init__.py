"""Records on their way between a topic and a terminal, file or pipe."""
