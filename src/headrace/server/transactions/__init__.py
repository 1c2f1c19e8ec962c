"""The transaction coordinator: a state machine over `__transaction_state`, and the markers that end transactions."""
