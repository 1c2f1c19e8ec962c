"""One broker process: accept, frame, dispatch; configuration and the node's life from start to stop."""
