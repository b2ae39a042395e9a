"""Acting without learning: policies, evaluation, films and data sets."""
