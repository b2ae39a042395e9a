"""Adapters to other libraries.

Each module imports its library. Of the other rooms, only the doctor imports them.
"""
