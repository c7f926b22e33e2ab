"""Tests of counting transfers at many virtual cores, and of what is predicted from them."""
