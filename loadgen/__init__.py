"""Workloads, clients and reports."""
