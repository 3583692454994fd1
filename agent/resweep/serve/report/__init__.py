"""The report of a sweep as one page: no script, nothing from outside, prints, dark and light."""
