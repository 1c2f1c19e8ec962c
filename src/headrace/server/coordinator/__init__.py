"""State machines over one compacted partition: what the group and the transaction coordinators share."""
