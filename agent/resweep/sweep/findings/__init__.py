"""What one look at a sweep may find, one file per question."""
