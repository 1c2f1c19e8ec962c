"""The cluster's facts: the image every broker holds, the controller that alone changes it, the store behind it."""
