"""The cluster's metadata: the image every broker holds, the controller that alone changes it, and the store behind it."""
