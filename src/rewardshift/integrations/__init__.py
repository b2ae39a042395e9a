"""Adapters to other libraries: each module imports its library, and no other room imports it."""
