"""Adapters to other libraries. Each module imports its library; no other room imports them."""
