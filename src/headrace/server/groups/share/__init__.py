"""Share groups (KIP-932) as their coordinator sees them: members, who looks at which partitions, and where state is kept."""
