"""POSIX in files by area; an interface is a class that puts areas together (`posix18`)."""
