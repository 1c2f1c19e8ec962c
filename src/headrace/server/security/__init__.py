"""Who may do what to which resource."""
