"""The labelled set: sampled from live traffic, reviewed by people, still speaking for the whole traffic."""
