"""Policies tried on live traffic: who decides when, what is held back meanwhile, what is noted."""
