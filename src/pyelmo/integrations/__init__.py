"""Thin modules for other libraries, one extra each. Every one only changes the shape of what pyelmo computes."""
