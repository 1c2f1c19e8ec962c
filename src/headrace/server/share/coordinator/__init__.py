"""The share coordinator: what share groups must not forget, in `__share_group_state`."""
