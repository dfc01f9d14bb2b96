"""A gateway of several processes: a parent that knows the fleet, children that answer."""
